#include "comm/cluster/cluster_communicator.hpp"

#include <algorithm>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/call_signature.hpp"
#include "comm/cluster/cluster_machine.hpp"
#include "core/default_arithmetic.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/types.hpp"
#include "core/uncancelled.hpp"
#include "engine/signature.hpp"
#include "topology/model/cores.hpp"
#include "transports/hybrid_transport.hpp"

namespace tacc {
ClusterCommunicator::ClusterCommunicator(ClusterMembership membership, int rank, int ranks, CommConfig config)
    : JoinedCommunicator(rank, ranks, std::move(config), std::move(membership.trace)),
      who_(std::move(membership.who)),
      hosts_(HostMap(who_).inOrder(membership.walk)),
      host_(hosts_.hostOf(rank)),
      local_(hosts_.localOf(rank)),
      node_(std::move(membership.node)),
      control_(std::move(membership.control)),
      endpoint_(rank, ranks, withLocalMessages(std::move(membership.transport)), *control_, membership.patience,
                [this] { return describeCurrent(); }),
      pairs_(endpoint_.peers(), endpoint_, rank, onThisHost(), insideHost()),
      transportName_(std::move(membership.transportName)),
      transportSettings_(std::move(membership.transportSettings)),
      speed_(membership.speed),
      topology_(std::move(membership.topology)),
      selector_(clusterMachine(who_, hosts_, *topology_, speed_, true), priceBoard()),
      tuner_(selector_),
      run_(endpoint_.peers(), endpoint_, PlanRanks(hosts_.everybody(), rank),
           selector_.request(Collective::barrier, 0)),
      unequal_(run_) {
  setTuning(std::move(membership.place), std::move(membership.tuning));
  endpoint_.setIdleCall(IdleCall(this->config().idle));
  if (!node_) return;
  node_->setIdleWork([this] { endpoint_.idle(pairs_.active()); });
  endpoint_.setComparison([this] { node_->compareAnnounced(); });
}

std::unique_ptr<NetworkTransport> ClusterCommunicator::withLocalMessages(
    std::unique_ptr<NetworkTransport> network) const {
  if (!node_) return network;
  return std::make_unique<HybridTransport>(std::move(network), node_->makeMessages(), hosts_.ranksOf(host_), ranks());
}

std::vector<int> ClusterCommunicator::onThisHost() const {
  std::vector<int> numbers(static_cast<std::size_t>(ranks()), -1);
  for (const int each : hosts_.ranksOf(host_)) numbers[static_cast<std::size_t>(each)] = hosts_.localOf(each);
  return numbers;
}

PairRun::InsideHost ClusterCommunicator::insideHost() {
  if (!node_) return {};
  return [this](std::span<const PointToPoint> operations) {
    endpoint_.beginIdle();
    node_->exchangeNow(operations);
  };
}

PriceBoard ClusterCommunicator::priceBoard() {
  if (!node_) return {};
  return {node_->board(), [this] {
            endpoint_.checkInterrupt();
            node_->checkErrors();
          }};
}

/// First of all nobody writes into the memory of runs that an Error has left under way.
ClusterCommunicator::~ClusterCommunicator() {
  const bool failed = asyncError_.load() != taccSuccess || !endpoint_.leave();
  endpoint_.closeTransport(failed);
}

void ClusterCommunicator::runSigned(const Call& call, std::uint64_t signature) {
  const Uncancelled whole;
  try {
    endpoint_.checkInterrupt();
    if (asyncError_.load() != taccSuccess) failAgain();
    ++call_;
    signature_ = signature;
    run_.open(signature_, call_);
    runCall(call);
  } catch (...) {
    reportFailure();
  }
}

/// Memory that the call worked in may be gone when its Error has come to the one that tells of it: nothing lands there
/// then.
void ClusterCommunicator::runCall(const Call& call) {
  try {
    runParts(call);
  } catch (...) {
    endpoint_.cancelReceives();
    throw;
  }
}

void ClusterCommunicator::exchangeNow(std::span<const PointToPoint> operations) {
  const Uncancelled whole;
  try {
    endpoint_.checkInterrupt();
    if (asyncError_.load() != taccSuccess) failAgain();
    pairs_.run(operations);
  } catch (...) {
    reportFailure();
  }
}

void ClusterCommunicator::reportFailure() {
  // What comes after the first failure is mostly its consequence, as the end of a wait.
  const Error error = cause().value_or(errorOf(std::current_exception(), rank(), [this] { return describeCurrent(); }));
  tell(error);
  endpoint_.fence();
  throw Error(error);
}

std::optional<Error> ClusterCommunicator::cause() const {
  const std::lock_guard lock(causeMutex_);
  return cause_;
}

void ClusterCommunicator::failAgain() const {
  if (const auto known = cause()) throw Error(*known);
  fail(taccRemoteError, "the communicator has failed before");
}

void ClusterCommunicator::noteFailure(const Error& error) const noexcept {
  {
    const std::lock_guard lock(causeMutex_);
    if (!cause_) cause_ = error;
  }
  taccResult_t none = taccSuccess;
  asyncError_.compare_exchange_strong(none, error.result());
}

void ClusterCommunicator::tell(const Error& error) const noexcept {
  noteFailure(error);
  control_->announce(error);
  if (node_) node_->post(error);
}

void ClusterCommunicator::failWith(const Error& error) noexcept {
  tell(error);
  endpoint_.interrupt();
}

void ClusterCommunicator::abort(const std::string& why) noexcept {
  const Error error = [&]() noexcept {
    try {
      return Error(taccRemoteError, why);
    } catch (...) {
      return errorOf(std::current_exception(), rank(), [] { return std::string("taccCommAbort"); });
    }
  }();
  noteFailure(error);
  control_->announce(error);
  endpoint_.interrupt();
  if (node_) node_->abort(why);
}

taccResult_t ClusterCommunicator::asyncError() const noexcept {
  if (const taccResult_t known = asyncError_.load(); known != taccSuccess) return known;
  try {
    control_->poll([this] { return fmt::format("is asked for its state; its last call was call {}", call_.load()); });
    return control_->deadRank() ? taccRemoteError : taccSuccess;
  } catch (const Error& error) {
    return error.result();
  } catch (...) {
    // What it read may be lost, so nobody can go on.
    const Error error = errorOf(std::current_exception(), rank(), [] { return std::string("taccCommGetAsyncError"); });
    tell(error);
    return error.result();
  }
}

std::string ClusterCommunicator::describeCurrent() const {
  const std::string where = config().name.empty() ? "" : " of communicator " + config().name;
  if (!making().empty()) return making() + where;
  if (const NetworkPairs* pairs = pairs_.active()) return pairs->describe() + where;
  return fmt::format("{}, call {}{}", describeSignature(signature_), call_.load(), where);
}

BucketSizes ClusterCommunicator::bucketSizes(std::size_t stepBytes) {
  const DefaultArithmetic arithmetic;
  return bucketSizesFor(stepBytes, [this](std::size_t bytes) {
    return selector_.explain(Collective::allReduce, placeOfRank0(), bytes).front().seconds;
  });
}

Standing ClusterCommunicator::standing() const {
  Standing mine{.host = host_,
                .hosts = hosts_.hosts(),
                .localRank = local_,
                .localRanks = static_cast<int>(hosts_.ranksOf(host_).size()),
                .numaDomain = numaDomainOf(allowedCores())};
  const auto known = topology_->findHost(who_[static_cast<std::size_t>(rank())].hostName.data());
  if (!known || topology_->levels() <= 2) return mine;
  mine.networkGroup = static_cast<int>(topology_->groupOf(1, *known));
  mine.networkGroups = static_cast<int>(topology_->groups(1));
  return mine;
}

void ClusterCommunicator::registerBuffer(void* buffer, std::size_t bytes) {
  if (node_) node_->registerBuffer(buffer, bytes);
}

void ClusterCommunicator::deregisterBuffer(void* buffer) {
  if (node_) node_->deregisterBuffer(buffer);
}

std::unique_ptr<Communicator> ClusterCommunicator::split(int color, int key, const CommConfig& config) {
  const DefaultArithmetic arithmetic;
  Group group = gatherGroup(color, key);
  const MakesPart says(*this, describeMaking(group));
  const bool isInside = isOnThisHost(group);
  // The id names addresses of the host that made it, so rank 0 of each group makes its own.
  const auto ids = gatherValues(color >= 0 && group.rank == 0 && !isInside ? makeUniqueId() : taccUniqueId{});
  if (color < 0) return nullptr;
  if (isInside) return makeInside(group, config);
  const taccUniqueId& id = ids[static_cast<std::size_t>(group.leader)];
  return joinGroup(std::move(group), id, config);
}

std::unique_ptr<Communicator> ClusterCommunicator::makeGroup(std::span<const int> members, const CommConfig& config) {
  const DefaultArithmetic arithmetic;
  Group group = groupOf(members);
  const MakesPart says(*this, describeMaking(group));
  if (isOnThisHost(group)) return makeInside(group, config);
  std::vector<taccUniqueId> ids;
  try {
    ids = gatherAmong(group, group.rank == 0 ? makeUniqueId() : taccUniqueId{});
  } catch (...) {
    reportFailure();
  }
  return joinGroup(std::move(group), ids.front(), config);
}

bool ClusterCommunicator::isOnThisHost(const Group& group) const {
  return node_ && std::ranges::all_of(group.members, [this](int member) { return hosts_.hostOf(member) == host_; });
}

/// Through what they share already.
std::unique_ptr<Communicator> ClusterCommunicator::makeInside(const Group& group, const CommConfig& config) {
  CommConfig known = config;
  known.topology = topology_;
  std::vector<int> locals;
  for (const int member : group.members) locals.push_back(hosts_.localOf(member));
  try {
    endpoint_.checkInterrupt();
    if (asyncError_.load() != taccSuccess) failAgain();
    endpoint_.beginIdle();
    return node_->makeGroup(locals, known);
  } catch (const Error&) {
    // What is wrong with the part alone, its ranks know.
    if (node_->asyncError() == taccSuccess) throw;
    reportFailure();
  } catch (...) {
    reportFailure();
  }
}

std::unique_ptr<Communicator> ClusterCommunicator::joinGroup(Group group, const taccUniqueId& id,
                                                             const CommConfig& config) {
  CommConfig known = config;
  known.topology = topology_;
  known.isPart = true;
  known.lent = std::make_shared<const LentConnections>(
      LentConnections{endpoint_.transport(), transportName_, transportSettings_, std::move(group.members)});
  const auto watch = [this] {
    endpoint_.checkInterrupt();
    control_->poll([] { return std::string("was making a part of the communicator"); });
  };
  return joinPart(id, group.ranks, group.rank, known, watch);
}

}  // namespace tacc
