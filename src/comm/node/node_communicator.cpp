#include "comm/node/node_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/call_demands.hpp"
#include "comm/call_signature.hpp"
#include "comm/cluster/tuning_agreement.hpp"
#include "comm/settings.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/types.hpp"
#include "core/uncancelled.hpp"
#include "engine/shm/streamed_pieces.hpp"
#include "engine/signature.hpp"
#include "selection/online/call_tuner.hpp"
#include "topology/model/cores.hpp"

namespace tacc {
namespace {

/// The operation of a call whose inputs have been multiplied already: a sum with a signature of its own.
constexpr auto preMulSum = static_cast<taccRedOp_t>(preMulSumCode);

}  // namespace

NodeCommunicator::NodeCommunicator(Membership membership, int rank, int ranks, CommConfig config,
                                   Environment environment)
    : JoinedCommunicator(rank, ranks, std::move(config), environment.trace),
      membership_(std::move(membership)),
      environment_(std::move(environment)),
      waiter_(
          membership_.segment, rank, membership_.processes, membership_.presence.get(), membership_.policy,
          this->config().operationTimeout, [this] { return describeCurrent(); }, membership_.names),
      exchange_(membership_.segment, rank, waiter_),
      buffers_(rank, ranks, exchange_, waiter_, membership_.handRound.get(), membership_.access),
      run_(membership_.segment, rank, ranks, waiter_, exchange_, buffers_, membership_.pages, membership_.processes,
           environment_.cma),
      unequal_(run_, waiter_, exchange_, membership_.pages, membership_.segment.geometry().eagerBytes),
      pairs_(membership_.segment, rank, waiter_, buffers_),
      direct_(rank, ranks, exchange_, buffers_, waiter_),
      selector_(NodeMachine(membership_.places, membership_.figures, static_cast<double>(membership_.cacheBytes)),
                membership_.segment.geometry().arenaBytes, membership_.policy.oversubscribed),
      placeOf_(membership_.places.order.size()) {
  for (std::size_t place = 0; place < placeOf_.size(); ++place)
    placeOf_[static_cast<std::size_t>(membership_.places.order[place])] = static_cast<int>(place);
  waiter_.setIdleCall(IdleCall(this->config().idle));
}

NodeCommunicator::~NodeCommunicator() {
  // Before the rendezvous closes: a rank that finds it closed looks whether this rank has left.
  if (membership_.presence) membership_.presence->leave();
}

void NodeCommunicator::runSigned(const Call& call, std::uint64_t signature) {
  try {
    waiter_.checkErrors();
    runCall(call, signature);
  } catch (...) {
    reportFailure();
  }
}

void NodeCommunicator::reportFailure() {
  const Uncancelled whole;
  const Error error = errorOf(std::current_exception(), waiter_.nameOf(rank()), [this] { return describeCurrent(); });
  waiter_.post(error.result(), error.what());
  fenceMemory(error);
  throw Error(error);
}

void NodeCommunicator::fenceMemory(const Error& error) {
  std::string open = run_.abandonCopies();
  const std::string library = buffers_.fence();
  if (!library.empty()) open += (open.empty() ? "" : "; ") + library;
  if (!open.empty())
    fail(error.result(), "{}; ranks of this call that are late may still write into {}", error.what(), open);
}

CallShape NodeCommunicator::shapeOf(const Call& call) {
  return shapeOf(call.collective, isRooted(call.collective) ? call.root : 0, call.count * sizeOf(call.type),
                 steered(call));
}

CallShape NodeCommunicator::shapeOf(Collective collective, int root, std::size_t bytes, std::string_view route) const {
  const std::string_view algorithm = route == eagerRoute ? std::string_view() : route;
  return {{collective, ranks(), root}, bytes, membership_.policy.oversubscribed, algorithm};
}

NodeQuestion NodeCommunicator::questionOf(const CallShape& shape, std::size_t posted) const {
  return {shape.request.collective, placeOf_[static_cast<std::size_t>(shape.request.root)], shape.bytes, false, posted};
}

bool NodeCommunicator::isPriced(Collective collective) const noexcept {
  return !selector_.machine().isFlat() && !isPrefix(collective);
}

bool NodeCommunicator::goesEager(const CallShape& shape, std::size_t posted, bool isSteered) {
  if (posted > eagerLimit(shape, membership_.segment.geometry().eagerBytes)) return false;
  if (isPrefix(shape.request.collective) || posted <= linePayload || isSteered) return true;
  return selector_.goesEager(questionOf(shape, posted));
}

NodePlan NodeCommunicator::choosePlan(const CallShape& shape, const LoweringFacts& facts, bool isOrdered) {
  if (!isPriced(shape.request.collective) || isOrdered)
    return {&selectAlgorithm(shape, facts), &shape.request, 0, nullptr, limitsOf(shape)};
  const std::size_t posts = eagerPostBytes(shape.request.collective, ranks(), shape.bytes);
  NodeQuestion question = questionOf(shape, posts <= membership_.segment.geometry().eagerBytes ? posts : 0);
  question.isDirect = facts.input == Access::mapped && facts.output == Access::mapped;
  const auto planOf = [&](const Algorithm* algorithm, int layout) {
    return NodePlan{algorithm, &selector_.request(question.collective, question.root, layout), layout,
                    membership_.places.isInOrder() ? nullptr : &membership_.places.order, limitsOf(shape)};
  };
  if (shape.forced.empty()) {
    const std::vector<NodeCandidate>& candidates = selector_.explain(question);
    const auto plan =
        std::ranges::find_if(candidates, [](const NodeCandidate& one) { return one.algorithm != nullptr; });
    return planOf(plan->algorithm, plan->layout);
  }
  const Algorithm* forced = findAlgorithm(shape.forced);
  const int layout = forced == nullptr ? 0 : selector_.bestLayout(question, *forced);
  CallShape placed = shape;
  placed.request = selector_.request(question.collective, question.root, layout);
  return planOf(&selectAlgorithm(placed, facts), layout);
}

bool NodeCommunicator::serves(const Algorithm& algorithm, Collective collective, const PlanDemands& demands) {
  // Plans that meet demands, or have the order of the ranks, follow no places.
  if (!isPriced(collective) || demands != PlanDemands{} || (config().isReproducible && isReduction(collective)))
    return meets(algorithm, {collective, ranks(), 0}, demands);
  const int layout = selector_.bestLayout({.collective = collective, .bytes = 64 * 1024}, algorithm);
  return meets(algorithm, selector_.request(collective, 0, layout), demands);
}

std::vector<CallRoute> NodeCommunicator::routes(Collective collective, std::size_t bytes) {
  const std::string_view steeredTo = steered(collective, bytes);
  const CallShape shape = shapeOf(collective, 0, bytes, steeredTo);
  const std::size_t posts = eagerPostBytes(collective, ranks(), bytes);
  const bool isEager = posts <= membership_.segment.geometry().eagerBytes;
  const bool hasPrices = isPriced(collective);
  std::vector<CallRoute> routes;
  if (isEager) routes.push_back({std::string(eagerRoute), std::nullopt});
  for (const Algorithm& algorithm : algorithms()) {
    const int layout = hasPrices ? selector_.bestLayout(questionOf(shape, 0), algorithm) : 0;
    if (!algorithm.serves(selector_.request(collective, shape.request.root, layout))) continue;
    routes.push_back({std::string(algorithm.name), std::nullopt});
  }
  if (hasPrices) {
    for (const NodeCandidate& candidate : selector_.explain(questionOf(shape, isEager ? posts : 0))) {
      const std::string_view name = candidate.algorithm == nullptr ? eagerRoute : candidate.algorithm->name;
      const auto route = std::ranges::find(routes, name, &CallRoute::name);
      if (route == routes.end() || !candidate.isPossible) continue;
      route->seconds = std::min(route->seconds.value_or(candidate.cost.seconds), candidate.cost.seconds);
    }
  }
  const std::string_view chosen =
      goesEager(shape, posts, !steeredTo.empty()) ? eagerRoute : choosePlan(shape, {}, false).algorithm->name;
  const auto found = std::ranges::find(routes, chosen, &CallRoute::name);
  std::rotate(routes.begin(), found, found + 1);
  return routes;
}

std::string NodeCommunicator::explain(Collective collective, std::size_t bytes) {
  const std::string_view steeredTo = steered(collective, bytes);
  const CallShape shape = shapeOf(collective, 0, bytes, steeredTo);
  if (const TunedSize* measured = tuned(collective, bytes))
    return fmt::format("{} of {} bytes, {} ranks on one host\n", nameOf(collective), bytes, ranks()) +
           describeTuned(*measured);
  const std::size_t posted = eagerPostBytes(collective, ranks(), bytes);
  const std::size_t limit = eagerLimit(shape, membership_.segment.geometry().eagerBytes);
  const bool isOrdered = config().isReproducible && isReduction(collective);
  std::string text = fmt::format("{} of {} bytes, {} ranks on one host: ", nameOf(collective), bytes, ranks());
  if (goesEager(shape, posted, !steeredTo.empty()))
    text += fmt::format("eager, all read what all have posted, as each posts {} bytes and the limit is {}\n", posted,
                        limit);
  else
    text +=
        fmt::format("{}{}; how data moves is measured while calls run\n",
                    choosePlan(shape, {}, isOrdered).algorithm->name, shape.forced.empty() ? "" : ", which was forced");
  if (!shape.forced.empty() || ranks() == 1 || collective == Collective::barrier || isPrefix(collective)) return text;
  if (isOrdered) text += "sums of floating-point numbers are in the order of the ranks; without that:\n";
  const NodeQuestion question = questionOf(shape, posted <= limit ? posted : 0);
  return text + selector_.machine().describe() + describeCandidates(selector_.explain(question), selector_.layouts());
}

void NodeCommunicator::runCall(const Call& call, std::uint64_t signature) {
  const auto runPart = [this](const Call& part) { runCall(part, signatureOf(part)); };
  if (call.factor != nullptr) return runMultiplied(call, rank(), ranks(), preMulSum, converted_, runPart);
  if (call.streamed != nullptr) return runInPieces(call, window_, runPart);
  if (call.blocks != nullptr) return runUnequal(call, signature);
  const std::size_t posted = eagerPostBytes(call.collective, ranks(), call.count * sizeOf(call.type));
  // What fits a line is in it, or its memory's, unless something steers it: the shortest calls choose nothing.
  const bool isSteered = !steered(call).empty();
  if (isSteered || posted > std::min(linePayload, membership_.segment.geometry().eagerBytes)) {
    const CallShape shape = shapeOf(call);
    // A single rank has nobody to post to, and empty calls nothing to plan.
    if (!goesEager(shape, posted, isSteered) && ranks() > 1 && call.count != 0 &&
        call.collective != Collective::barrier)
      return runPlan(call, shape, signature);
  }
  EagerCall eager = run_.eagerCallOf(call, posted);
  run_.runEager(eager, signature);
  lastAlgorithm_ = "eager";
  // Of other calls more is to be known, or their buffers may be null.
  if (isSteered || posted > linePayload || call.isInternal || call.user != nullptr || call.op >= taccNumOps) return;
  if (call.count == 0 && call.collective != Collective::barrier) return;
  readyCalls_[static_cast<std::size_t>(call.collective)] = {eager, signature};
  noteShortCall(call);
}

void NodeCommunicator::repeat(Collective collective, const void* send, void* receive) {
  ReadyCall& ready = readyCalls_[static_cast<std::size_t>(collective)];
  ready.eager.send = static_cast<const std::byte*>(send);
  ready.eager.receive = static_cast<std::byte*>(receive);
  record(ready.signature, [&] {
    try {
      waiter_.checkErrors();
      run_.runShort(ready.eager, ready.signature);
    } catch (...) {
      reportFailure();
    }
  });
  lastAlgorithm_ = "eager";
}

void NodeCommunicator::runPlan(const Call& call, const CallShape& shape, std::uint64_t signature) {
  const LoweringFacts facts = run_.meet(call, signature);
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  const NodePlan plan = choosePlan(shape, facts, demands.rankOrder);
  if (!run_.run(call, plan, demands))
    return runWidened(call, rank(), ranks(), converted_,
                      [this](const Call& sum) { runPlan(sum, shapeOf(sum), signatureOf(sum)); });
  lastAlgorithm_ = plan.algorithm->name;
}

void NodeCommunicator::runUnequal(const Call& call, std::uint64_t signature) {
  lastAlgorithm_ = "eager";
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  const std::string_view route = forced(call.collective, demands);
  const UnequalNodeRun::Left left = unequal_.begin(call, signature, route.empty());
  if (left == UnequalNodeRun::Left::messages) {
    membership_.pages.need(AreaPart::pairs);
    pairs_.run(unequal_.messages(call));
  }
  if (left != UnequalNodeRun::Left::plan) return;
  const LoweringFacts facts = unequal_.meet(call, signature);
  CallShape shape = shapeOf(call);
  shape.bytes = unequal_.longestBytes();
  shape.forced = route;
  const Algorithm& algorithm = selectAlgorithm(shape, facts);
  unequal_.run(call, {&algorithm, &shape.request, 0, nullptr, limitsOf(shape)}, demands);
  lastAlgorithm_ = algorithm.name;
}

ScheduleLimits NodeCommunicator::limitsOf(const CallShape& shape) const {
  return {membership_.segment.geometry().arenaBytes, environment_.chunkSize.value_or(stagingChunk(shape)),
          stagingAhead(shape)};
}

bool NodeCommunicator::updateNow(const DirectUpdate& update) {
  try {
    waiter_.checkErrors();
    return direct_.run(update, signatureOf(update));
  } catch (...) {
    reportFailure();
  }
}

std::unique_ptr<LocalMessages> NodeCommunicator::makeMessages() const {
  const std::vector<int> none;
  return std::make_unique<LocalMessages>(membership_.segment, rank(), waiter_,
                                         membership_.access.kernelReads ? membership_.processes : none);
}

void NodeCommunicator::announce(std::uint64_t signature) {
  try {
    waiter_.checkErrors();
    exchange_.begin(signature, 0, false, CallTuner::callsAhead);
    exchange_.post();
  } catch (...) {
    reportFailure();
  }
}

void NodeCommunicator::exchangeNow(std::span<const PointToPoint> operations) {
  try {
    waiter_.checkErrors();
    membership_.pages.need(AreaPart::pairs);
    pairs_.run(operations);
  } catch (...) {
    reportFailure();
  }
}

void NodeCommunicator::abort(const std::string& why) noexcept { waiter_.post(taccRemoteError, why); }

void NodeCommunicator::failWith(const Error& error) noexcept { post(error); }

taccResult_t NodeCommunicator::asyncError() const noexcept {
  const ErrorBoard& board = membership_.segment.errorBoard();
  if (board.state.load(std::memory_order_acquire) != 2) return taccSuccess;
  return board.rank == rank() ? static_cast<taccResult_t>(board.result) : taccRemoteError;
}

Standing NodeCommunicator::standing() const {
  return {.localRank = rank(), .localRanks = ranks(), .numaDomain = numaDomainOf(allowedCores())};
}

std::string NodeCommunicator::describeCurrent() const {
  const std::string where = config().name.empty() ? "" : " of communicator " + config().name;
  return (!making().empty() ? making() : pairs_.isRunning() ? pairs_.describe() : exchange_.describe()) + where;
}

void NodeCommunicator::registerBuffer(void* buffer, std::size_t bytes) {
  // Threads access any memory; library memory is shared already.
  if (membership_.access.sameProcess || findLibrarySegment(buffer, bytes)) return;
  adopted_.reserve(adopted_.size() + 1);
  if (adoptMemory(buffer, bytes)) adopted_.push_back(buffer);
}

void NodeCommunicator::deregisterBuffer(void* buffer) {
  const auto found = std::ranges::find(adopted_, buffer);
  if (found == adopted_.end()) return;
  adopted_.erase(found);
  releaseAdopted(buffer);
}

std::vector<std::unique_ptr<Communicator>> Communicator::makeThreads(int ranks, const CommConfig& config) {
  const Environment environment = checkEnvironment();
  const CommConfig effective = applyEnvironment(config, environment);
  const TuningUse use = tuningUseOfNode(ranks, config.isPart);
  const std::optional<TuningText> found = lookForTuning(environment, Surroundings::here());
  const std::shared_ptr<const Tuning> tuning = found ? judgeTuning(*found, use, 0) : nullptr;
  std::vector<std::unique_ptr<Communicator>> made;
  for (Membership& membership : makeThreadNode(ranks, environment)) {
    const int rank = static_cast<int>(made.size());
    auto one = std::make_unique<NodeCommunicator>(std::move(membership), rank, ranks, effective, environment);
    one->setTuning(use.here, tuning);
    made.push_back(std::move(one));
  }
  return made;
}

}  // namespace tacc
