#include "comm/node_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "algorithms/rank_order.hpp"
#include "base/error.hpp"
#include "base/exceptions.hpp"
#include "base/types.hpp"
#include "comm/call_signature.hpp"
#include "comm/converted_call.hpp"
#include "comm/settings.hpp"
#include "comm/streamed_sum.hpp"
#include "comm/tuning_agreement.hpp"
#include "comm/unique_id.hpp"
#include "compute/reduce.hpp"
#include "engine/signature.hpp"
#include "topology/cores.hpp"

namespace tacc {
namespace {

/// The operation of a call whose inputs have been multiplied already: a sum with a signature of its own.
constexpr auto preMulSum = static_cast<taccRedOp_t>(preMulSumCode);

constexpr std::size_t leastMeasuredPost =
    1024;  // below, streaming never pays for its fence, nor two looks at the clock

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

ReduceKernel kernelFor(const Call& call) {
  return reduceKernel(call.type, call.op == taccAvg || call.op >= firstSumCode ? taccSum : call.op);
}

}  // namespace

NodeCommunicator::NodeCommunicator(Membership membership, int rank, int ranks, CommConfig config,
                                   Environment environment)
    : JoinedCommunicator(rank, ranks, std::move(config), environment.trace),
      membership_(std::move(membership)),
      environment_(std::move(environment)),
      waiter_(
          membership_.segment, rank, membership_.processes, membership_.liveness.get(), membership_.policy,
          this->config().operationTimeout, [this] { return describeCurrent(); }, membership_.names),
      exchange_(membership_.segment, rank, waiter_),
      flat_(rank, ranks, exchange_),
      buffers_(rank, ranks, exchange_, waiter_, membership_.handRound.get(), membership_.access),
      executor_(membership_.segment, rank, waiter_, membership_.processes),
      pairs_(membership_.segment, rank, waiter_, buffers_),
      programs_(rank) {
  waiter_.setIdleCall(IdleCall(this->config().idle));
}

NodeCommunicator::~NodeCommunicator() = default;

void NodeCommunicator::runNow(const Call& call) {
  try {
    waiter_.checkErrors();
    runCall(call);
  } catch (...) {
    reportFailure();
  }
}

void NodeCommunicator::reportFailure() {
  const Error error = errorOf(std::current_exception(), waiter_.nameOf(rank()), [this] { return describeCurrent(); });
  waiter_.post(error.result(), error.what());
  fenceMemory(error);
  throw Error(error);
}

void NodeCommunicator::fenceMemory(const Error& error) {
  const std::string open = buffers_.fence();
  if (!open.empty())
    fail(error.result(), "{}; ranks of this call that are late may still write into {}", error.what(), open);
}

CallShape NodeCommunicator::shapeOf(const Call& call) const {
  return {{call.collective, ranks(), isRooted(call.collective) ? call.root : 0},
          call.count * sizeOf(call.type),
          membership_.policy.oversubscribed,
          steeredPlan(call.collective, call.count * sizeOf(call.type))};
}

std::string_view NodeCommunicator::steeredPlan(Collective collective, std::size_t bytes) const {
  const std::string_view way = steered(collective, bytes);
  return way == flatWay ? std::string_view() : way;
}

std::vector<CallWay> NodeCommunicator::ways(Collective collective, std::size_t bytes) {
  const PlanRequest request{collective, ranks(), 0};
  const CallShape shape{request, bytes, membership_.policy.oversubscribed, steeredPlan(collective, bytes)};
  const bool isFlat = flatPostBytes(collective, ranks(), bytes) <= membership_.segment.geometry().eagerBytes;
  std::vector<CallWay> ways;
  if (isFlat) ways.push_back({std::string(flatWay), std::nullopt});
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.serves(request)) ways.push_back({std::string(algorithm.name), std::nullopt});
  const bool goesFlat = isFlat && shape.forced.empty();
  const std::string_view chosen = goesFlat ? flatWay : selectAlgorithm(shape, {}).name;
  const auto found = std::ranges::find(ways, chosen, &CallWay::name);
  std::rotate(ways.begin(), found, found + 1);
  return ways;
}

std::string NodeCommunicator::explain(Collective collective, std::size_t bytes) {
  const CallShape shape{
      {collective, ranks(), 0}, bytes, membership_.policy.oversubscribed, steeredPlan(collective, bytes)};
  if (const TunedSize* measured = tuned(collective, bytes))
    return fmt::format("{} of {} bytes, {} ranks on one host\n", nameOf(collective), bytes, ranks()) +
           describeTuned(*measured);
  const std::size_t posted = flatPostBytes(collective, ranks(), bytes);
  const std::size_t limit = flatLimit(shape, membership_.segment.geometry().eagerBytes);
  if (posted <= limit)
    return fmt::format(
        "{} of {} bytes, {} ranks on one host: flat, all read what all have posted, as each posts {} bytes "
        "and the limit is {}\n",
        nameOf(collective), bytes, ranks(), posted, limit);
  return fmt::format("{} of {} bytes, {} ranks on one host: {}{}; how data moves is measured while calls run\n",
                     nameOf(collective), bytes, ranks(), selectAlgorithm(shape, {}).name,
                     shape.forced.empty() ? "" : ", which was forced");
}

void NodeCommunicator::runCall(const Call& call) {
  if (call.factor != nullptr)
    return runMultiplied(call, rank(), ranks(), preMulSum, [this](const Call& sum) { runCall(sum); });
  if (call.streamed != nullptr) return runStreamed(call);
  const CallShape shape = shapeOf(call);
  if (!runFlat(call, shape)) runPlan(call, shape);
}

bool NodeCommunicator::runFlat(const Call& call, const CallShape& shape) {
  const std::size_t posted = flatPostBytes(call.collective, ranks(), shape.bytes);
  const bool small = posted <= flatLimit(shape, membership_.segment.geometry().eagerBytes);
  // A single rank has nobody to post to, and empty calls nothing to plan.
  if (!small && ranks() > 1 && call.count != 0 && call.collective != Collective::barrier) return false;
  const bool measured = posted >= leastMeasuredPost && ranks() > 1;
  FlatCall flat{.collective = call.collective,
                .send = static_cast<const std::byte*>(call.send),
                .receive = static_cast<std::byte*>(call.receive),
                .bytes = shape.bytes,
                .count = call.count,
                .root = call.root,
                .reduce = kernelFor(call),
                .divisor = call.op == taccAvg ? ranks() : 1,
                .stream = false};
  exchange_.begin(signatureOf(call), posted, isRooted(call.collective));
  if (measured) {
    flat.stream = flatManners_.choose(call.collective, MannerKind::flat, posted).streamSlots;
    if (flatManners_.wantsTime()) {
      const Stopwatch watch;
      flat_.run(flat);
      flatManners_.record(watch.seconds());
      lastAlgorithm_ = "flat";
      return true;
    }
  }
  flat_.run(flat);
  lastAlgorithm_ = "flat";
  return true;
}

void NodeCommunicator::runPlan(const Call& call, const CallShape& shape) {
  exchange_.begin(signatureOf(call), linePayload);
  const auto buffersOf = [&call, this](int peer) { return usedBuffers(call, peer, ranks()); };
  auto [facts, slowest] = buffers_.run(buffersOf(rank()), buffersOf, lastSeconds_, callBuffers_);
  plannedManners_.record(slowest);
  const Manner manner = plannedManners_.choose(call.collective, mannerKindOf(facts), shape.bytes);
  if (!manner.throughKernel)
    for (Reach* reach : {&facts.input, &facts.output})
      if (*reach == Reach::kernel) *reach = Reach::none;

  const Algorithm& algorithm = selectAlgorithm(shape, facts);
  CachedProgram& cached = programs_.get(algorithm, shape.request, facts);
  if (config().isReproducible && isReduction(call.collective) && isFloating(call.type)) {
    if (!cached.isInRankOrder) cached.isInRankOrder = combinesInRankOrder(algorithm, shape.request);
    if (!*cached.isInRankOrder) failOnOrder(algorithm, shape.request);
  }
  if (isHalfWidth(call.type) && !cached.program.roundsOnce)
    return runWidened(call, rank(), ranks(), [this](const Call& sum) { runPlan(sum, shapeOf(sum)); });
  const std::size_t elementBytes = sizeOf(call.type);
  if (cached.count != call.count || cached.elementBytes != elementBytes) {
    const ScheduleLimits limits{membership_.segment.geometry().arenaBytes,
                                environment_.chunkSize.value_or(stagingChunk(shape))};
    cached.schedule = makeSchedule(cached.program, call.count, elementBytes, limits);
    cached.count = call.count;
    cached.elementBytes = elementBytes;
  }
  const Stopwatch watch;
  executor_.run(cached.program, cached.schedule, callBuffers_,
                {.count = call.count,
                 .elementBytes = elementBytes,
                 .reduce = kernelFor(call),
                 .divisor = call.op == taccAvg ? ranks() : 1,
                 .streamSlots = manner.streamSlots,
                 // Results that fit the core's own cache stay there: whoever asked for them reads them next.
                 .streamResults = manner.streamResults && shape.bytes >= ownCacheBytes()});
  buffers_.finish();
  lastSeconds_ = static_cast<float>(watch.seconds());
  lastAlgorithm_ = algorithm.name;
}

MannerKind NodeCommunicator::mannerKindOf(const LoweringFacts& facts) const {
  if (facts.input == Reach::direct && facts.output == Reach::direct) return MannerKind::direct;
  if (facts.input != Reach::kernel && facts.output != Reach::kernel) return MannerKind::staged;
  return environment_.cma == CmaMode::on ? MannerKind::kernel : MannerKind::either;
}

std::unique_ptr<LocalMessages> NodeCommunicator::makeMessages() const {
  const std::vector<int> none;
  return std::make_unique<LocalMessages>(membership_.segment, rank(), waiter_,
                                         membership_.access.kernelReads ? membership_.processes : none);
}

void NodeCommunicator::announce(std::uint64_t signature) {
  try {
    waiter_.checkErrors();
    exchange_.begin(signature, 0);
    exchange_.post();
  } catch (...) {
    reportFailure();
  }
}

void NodeCommunicator::exchangeNow(std::span<const PointToPoint> operations) {
  try {
    waiter_.checkErrors();
    exchangingPairs_ = true;
    pairs_.run(operations);
    exchangingPairs_ = false;
  } catch (...) {
    exchangingPairs_ = false;
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
  return (exchangingPairs_ ? pairs_.describe() : exchange_.describe()) + where;
}

void NodeCommunicator::registerBuffer(void* buffer, std::size_t bytes) {
  // Threads reach any memory; library memory is shared already.
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

std::unique_ptr<Communicator> NodeCommunicator::split(int color, int key, const CommConfig& config) {
  const auto [newRank, newRanks, leader, members] = gatherGroup(color, key);

  CommConfig part = config;
  part.isPart = true;
  if (!membership_.access.sameProcess) {
    const auto ids = gatherValues(color >= 0 && newRank == 0 ? makeHostUniqueId() : taccUniqueId{});
    if (color < 0) return nullptr;
    return joinPart(ids[static_cast<std::size_t>(leader)], newRanks, newRank, part, [this] { checkErrors(); });
  }
  // Threads: the leader of each group makes all its members; each takes its own before the leader goes on.
  std::vector<std::unique_ptr<Communicator>> made;
  try {
    if (color >= 0 && leader == rank()) made = makeThreads(newRanks, part);
  } catch (...) {
    reportFailure();  // the others wait for this rank's answer
  }
  const auto places = gatherValues(&made);
  std::unique_ptr<Communicator> mine;
  if (color >= 0) mine = std::move((*places[static_cast<std::size_t>(leader)])[static_cast<std::size_t>(newRank)]);
  runNow({.collective = Collective::barrier});
  return mine;
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
