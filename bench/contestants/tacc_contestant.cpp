#include "contestants/tacc_contestant.hpp"

#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "contestants/id_text.hpp"
#include "worker/element.hpp"

namespace tacc::bench {

TaccContestant::TaccContestant(int rank, int ranks, TaccSettings settings)
    : rank_(rank), ranks_(ranks), settings_(std::move(settings)), joinsById_(true) {}

TaccContestant::TaccContestant(taccComm_t comm, int rank, int ranks, TaccSettings settings)
    : rank_(rank), ranks_(ranks), settings_(std::move(settings)), comm_(comm) {}

TaccContestant::~TaccContestant() {
  for (size_t i = lanes_.size(); i-- > 0;) {
    if (lanes_[i].stream != nullptr) taccStreamDestroy(lanes_[i].stream);
    if (i > 0) taccCommDestroy(lanes_[i].comm);
  }
  if (comm_ != nullptr) taccCommDestroy(comm_);
}

std::string TaccContestant::secret() {
  if (!joinsById_ || rank_ != 0) return "";
  taccUniqueId id;
  require(taccGetUniqueId(&id));
  return toHex(id);
}

void TaccContestant::join(const std::string& secret) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.name = "tacc_bench";
  if (!settings_.algorithm.empty()) config.algorithm = settings_.algorithm.c_str();
  if (settings_.timeout > 0) config.operationTimeout = settings_.timeout;
  if (joinsById_) {
    require(taccCommInitRankConfig(&comm_, ranks_, fromHex(secret), rank_, &config));
  } else if (config.algorithm != nullptr || settings_.timeout > 0) {
    // taccCommInitAll takes no configuration, but a split of the whole does.
    taccComm_t configured = nullptr;
    require(taccCommSplit(comm_, 0, rank_, &configured, &config));
    taccCommDestroy(comm_);
    comm_ = configured;
  }
  makeLanes();
}

void TaccContestant::makeLanes() {
  lanes_.push_back({comm_});
  for (int i = 0; i < settings_.streams; ++i) {
    if (i > 0) {
      lanes_.emplace_back();
      require(taccCommSplit(comm_, 0, rank_, &lanes_.back().comm, nullptr));
    }
    require(taccStreamCreate(&lanes_.back().stream));
  }
}

void* TaccContestant::allocate(size_t bytes, bool smallPages) {
  void* buffer = nullptr;
  if (!settings_.libraryMemory) {
    buffer = Contestant::allocate(bytes, smallPages);
    if (settings_.registers) require(taccCommRegister(comm_, buffer, bytes, &registrations_[buffer]));
    return buffer;
  }
  require(taccMemAlloc(&buffer, bytes));
  std::memset(buffer, 0, bytes);
  return buffer;
}

void TaccContestant::release(void* buffer, size_t bytes) {
  if (const auto found = registrations_.find(buffer); found != registrations_.end())
    taccCommDeregister(comm_, found->second);
  if (!settings_.libraryMemory) return Contestant::release(buffer, bytes);
  taccMemFree(buffer);
}

void TaccContestant::run(const Call& call) {
  run(call, lanes_[next_]);
  if (!isInGroup_ && ++next_ == lanes_.size()) next_ = 0;
}

void TaccContestant::finish() {
  for (const Lane& lane : lanes_)
    if (lane.stream != nullptr) require(taccStreamSynchronize(lane.stream));
}

void TaccContestant::beginGroup() {
  isInGroup_ = true;
  require(taccGroupStart());
}

void TaccContestant::endGroup() {
  require(taccGroupEnd());
  isInGroup_ = false;
  if (++next_ == lanes_.size()) next_ = 0;
}

void TaccContestant::run(const Call& call, const Lane& lane) {
  const Task& t = *call.task;
  switch (t.collective->kind) {
    case Kind::allReduce:
      return require(taccAllReduce(call.send, call.recv, t.count, t.type, t.op, lane.comm, lane.stream));
    case Kind::broadcast:
      return require(taccBroadcast(call.send, call.recv, t.count, t.type, t.root, lane.comm, lane.stream));
    case Kind::reduce:
      return require(taccReduce(call.send, call.recv, t.count, t.type, t.op, t.root, lane.comm, lane.stream));
    case Kind::allGather:
      return require(taccAllGather(call.send, call.recv, t.count, t.type, lane.comm, lane.stream));
    case Kind::reduceScatter:
      return require(taccReduceScatter(call.send, call.recv, t.count, t.type, t.op, lane.comm, lane.stream));
    case Kind::allToAll:
      return require(taccAllToAll(call.send, call.recv, t.count, t.type, lane.comm, lane.stream));
    case Kind::gather:
      return require(taccGather(call.send, call.recv, t.count, t.type, t.root, lane.comm, lane.stream));
    case Kind::scatter:
      return require(taccScatter(call.send, call.recv, t.count, t.type, t.root, lane.comm, lane.stream));
    case Kind::scan:
      return require(taccScan(call.send, call.recv, t.count, t.type, t.op, lane.comm, lane.stream));
    case Kind::exscan:
      return require(taccExscan(call.send, call.recv, t.count, t.type, t.op, lane.comm, lane.stream));
    case Kind::allGatherV:
    case Kind::reduceScatterV:
    case Kind::gatherV:
    case Kind::scatterV:
    case Kind::allToAllV:
      return runUnequal(call, lane);
    case Kind::sendRecv:
      return sendRecv(call, lane);
    case Kind::barrier:
      return require(taccBarrier(lane.comm, lane.stream));
  }
}

void TaccContestant::runUnequal(const Call& call, const Lane& lane) {
  const Task& t = *call.task;
  const bool toAll = t.collective->kind == Kind::allToAllV;
  if (blocks_.counts.empty() || blocksMean_ != t.count || blocksAreToAll_ != toAll) {
    blocks_ = drawnBlocks(t.count, toAll ? rank_ : 0, ranks_);
    blocksMean_ = t.count;
    blocksAreToAll_ = toAll;
  }
  const size_t *counts = blocks_.counts.data(), *places = blocks_.places.data(), own = counts[rank_];
  const Kind kind = t.collective->kind;
  if (kind == Kind::allGatherV)
    return require(taccAllGatherV(call.send, call.recv, counts, places, t.type, lane.comm, lane.stream));
  if (kind == Kind::reduceScatterV)
    return require(taccReduceScatterV(call.send, call.recv, counts, places, t.type, t.op, lane.comm, lane.stream));
  if (kind == Kind::gatherV)
    return require(taccGatherV(call.send, own, call.recv, counts, places, t.type, t.root, lane.comm, lane.stream));
  if (kind == Kind::scatterV)
    return require(taccScatterV(call.send, counts, places, call.recv, own, t.type, t.root, lane.comm, lane.stream));
  require(taccAllToAllV(call.send, counts, places, call.recv, counts, places, t.type, lane.comm, lane.stream));
}

void TaccContestant::sendRecv(const Call& call, const Lane& lane) {
  const Task& t = *call.task;
  require(taccGroupStart());
  require(taccSend(call.send, t.count, t.type, (rank_ + 1) % ranks_, lane.comm, lane.stream));
  require(taccRecv(call.recv, t.count, t.type, (rank_ + ranks_ - 1) % ranks_, lane.comm, lane.stream));
  require(taccGroupEnd());
}

void TaccContestant::barrier() { require(taccBarrier(comm_, nullptr)); }

std::string TaccContestant::algorithm(const Call& last) const {
  const Task& t = *last.task;
  const std::size_t bytes = t.count * elementSize(t.type);
  if (!settings_.explainTo.empty() && rank_ == 0 && explained_.insert({t.collective->name, bytes}).second) {
    const char* text = taccExplain(comm_, t.collective->name, bytes);
    std::ofstream(settings_.explainTo, std::ios::app) << (text == nullptr ? "this is no collective\n" : text);
  }
  return taccCommLastAlgorithm(comm_);
}

double TaccContestant::cpuSeconds() const {
  if (!settings_.isThread) return Contestant::cpuSeconds();
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void TaccContestant::require(taccResult_t result) const {
  if (result == taccSuccess) return;
  std::string message = comm_ != nullptr ? taccGetLastError(comm_) : "";
  if (message.empty()) message = taccGetLastError(nullptr);
  throw std::runtime_error(fmt::format("{}: {}", taccGetErrorString(result), message));
}

}  // namespace tacc::bench
