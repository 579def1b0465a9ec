// How a communicator over several hosts runs plans: between all ranks, or between those that stand for their hosts.
#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithms/rank_order.hpp"
#include "algorithms/registry.hpp"
#include "comm/call_kernel.hpp"
#include "comm/call_shape.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/partition.hpp"
#include "selection/network_selection.hpp"

namespace tacc {
namespace {

/// Up to here copying all blocks costs less than sending them one by one.
constexpr std::size_t sortedLimit = 256 * 1024;

const std::byte* sendOf(const Call& call) { return static_cast<const std::byte*>(call.send); }
std::byte* receiveOf(const Call& call) { return static_cast<std::byte*>(call.receive); }

/// `chunk` elements each, of a vector, or of every block of a stack.
std::vector<NetworkChunk> cut(const std::byte* input, std::byte* output, std::size_t count, std::size_t chunk,
                              std::size_t elementBytes) {
  std::vector<NetworkChunk> chunks;
  for (std::size_t begin = 0; begin < count; begin += chunk) {
    const std::size_t offset = begin * elementBytes;
    chunks.push_back({input == nullptr ? nullptr : input + offset, output == nullptr ? nullptr : output + offset,
                      std::min(chunk, count - begin)});
  }
  return chunks;
}

std::size_t indexOf(const std::vector<int>& members, int rank) {
  return static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
}

}  // namespace

const NetworkProgram& ClusterCommunicator::programFor(const Algorithm& algorithm, const NetworkChooser& chooser,
                                                      Collective collective, int root, int member, bool inPlace) {
  const std::tuple key{&algorithm, static_cast<int>(collective), chooser.ranks(), root, member, inPlace};
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const LocalPlan plan = makeLocalPlan(algorithm, chooser.request(collective, root), member);
  return programs_.emplace(key, lowerForNetwork(plan, inPlace)).first->second;
}

std::byte* ClusterCommunicator::workspace(std::size_t bytes) {
  if (workspace_.size() < bytes) workspace_.resize(bytes);
  return workspace_.data();
}

void ClusterCommunicator::runInNode(Call call) {
  if (call.op == taccAvg) call.op = taccSum;  // divided once, by whoever completes the sum
  endpoint_.beginIdle();
  node_->runNow(call);
}

NetworkChooser& ClusterCommunicator::chooserFor(const std::vector<int>& members) noexcept {
  return &members == &everybody_ || &members == &inOrder_ ? betweenAll_ : betweenHosts_;
}

int ClusterCommunicator::lanesOf(const std::vector<int>& members) const noexcept {
  return &members == &lane_ && !isAlone() ? node_->ranks() : 1;
}

const Algorithm& ClusterCommunicator::algorithmFor(Collective collective, const std::vector<int>& members, int root,
                                                   std::size_t bytes) {
  NetworkChooser& chooser = chooserFor(members);
  const std::string_view way = steered(collective, callBytes_);
  if (way.empty() && isDynamic()) return tuner_.choose(chooser, collective, root, bytes, lanesOf(members));
  return chooser.choose(collective, root, bytes, way);
}

std::size_t ClusterCommunicator::chunkOf(Collective collective, const std::vector<int>& members, const Call& call,
                                         std::size_t lanes) {
  const std::size_t size = sizeOf(call.type), bytes = call.count / lanes * size;
  const int root = isRooted(collective) ? static_cast<int>(indexOf(members, call.root)) : 0;
  const Algorithm& algorithm = algorithmFor(collective, members, root, bytes);
  const NetworkChooser& chooser = chooserFor(members);
  // All members' programs have as many blocks: this rank's is needed anyway, if it has one.
  const std::size_t mine = indexOf(members, rank());
  const int member = mine < members.size() ? static_cast<int>(mine) : 0;
  const bool inPlace = usedBuffers(call, rank(), ranks()).inPlace;
  const int blocks = programFor(algorithm, chooser, collective, root, member, inPlace).blocks;
  const std::size_t message = chooser.messageBytes(collective, bytes, static_cast<int>(lanes));
  return std::max<std::size_t>(1, message / size) * static_cast<std::size_t>(blocks);
}

void ClusterCommunicator::startBetween(const Call& call, Between between, std::size_t released) {
  const std::size_t elementBytes = sizeOf(call.type);
  const auto member = static_cast<int>(indexOf(between.members, rank()));
  const Algorithm& algorithm = between.algorithm != nullptr ? *between.algorithm
                                                            : algorithmFor(between.collective, between.members,
                                                                           between.root, between.count * elementBytes);
  NetworkWork work;
  work.program =
      &programFor(algorithm, chooserFor(between.members), between.collective, between.root, member, between.inPlace);
  work.members = between.members;
  work.chunks = std::move(between.chunks);
  work.blockBytes = (between.distance != 0 ? between.distance : between.count) * elementBytes;
  work.blocks = between.blocks;
  // Blocks of the caller's buffers are in the order of the ranks.
  if (between.blocks == nullptr && &between.members == &everybody_ && !between.isSorted &&
      !std::ranges::is_sorted(everybody_)) {
    work.places = everybody_;
    work.inputHasPlaces = between.collective != Collective::allGather && between.collective != Collective::gather;
    work.outputHasPlaces = between.collective != Collective::reduceScatter && between.collective != Collective::scatter;
  }
  work.elementBytes = elementBytes;
  work.reduce = kernelOf(call, taccNumOps);
  work.divisor = call.op == taccAvg ? ranks() : 1;
  work.signature = signature_;
  work.call = call_;
  work.window = chunksUnderWay;
  endpoint_.guard(&run_, [&] { run_.start(std::move(work), released); });
  active_ = &run_;
  lastAlgorithm_ = algorithm.name;
}

void ClusterCommunicator::finishBetween() {
  endpoint_.run(run_, [this] { return run_.isFinished(); });
  active_ = nullptr;
}

void ClusterCommunicator::runPipeline(const Pipeline& pipeline) {
  for (std::size_t k = 0; k < pipeline.chunks + chunksUnderWay; ++k) {
    if (k < pipeline.chunks) {
      if (pipeline.inward) pipeline.inward(k);
      if (pipeline.inNetwork) {
        run_.release(k + 1);
        endpoint_.guard(&run_, [&] { run_.advance(); });
      }
    }
    if (k < chunksUnderWay || k - chunksUnderWay >= pipeline.chunks) continue;
    const std::size_t done = k - chunksUnderWay;
    if (pipeline.inNetwork) endpoint_.run(run_, [&] { return run_.completed() > done; });
    if (pipeline.outward) pipeline.outward(done);
  }
  if (pipeline.inNetwork) finishBetween();
}

void ClusterCommunicator::runSorted(const Call& call) {
  const std::size_t block = call.count * sizeOf(call.type);
  const bool gathers = call.collective == Collective::allGather;
  std::byte* const stack = workspace(block * everybody_.size());
  const auto inOrder = [&](std::size_t i) { return stack + i * block; };
  const auto ofRank = [&](std::size_t i) { return static_cast<std::size_t>(everybody_[i]) * block; };
  for (std::size_t i = 0; !gathers && i < everybody_.size(); ++i)
    std::memcpy(inOrder(i), sendOf(call) + ofRank(i), block);
  const NetworkChunk chunk{gathers ? sendOf(call) : stack, gathers ? stack : receiveOf(call), call.count};
  startBetween(call, {call.collective, everybody_, 0, false, call.count, {chunk}, true}, call.count);
  finishBetween();
  for (std::size_t i = 0; gathers && i < everybody_.size(); ++i)
    std::memcpy(receiveOf(call) + ofRank(i), inOrder(i), block);
}

void ClusterCommunicator::runPlan(const Call& call) {
  const bool isStack = call.collective == Collective::allGather || call.collective == Collective::reduceScatter;
  const std::size_t bytes = call.count * sizeOf(call.type) * everybody_.size();
  if (isStack && bytes <= sortedLimit && !std::ranges::is_sorted(everybody_)) return runSorted(call);
  const UserBuffers mine = usedBuffers(call, rank(), ranks());
  if (isPrefix(call.collective)) return runPrefix(call, mine);
  const std::size_t chunk = chunkOf(call.collective, everybody_, call, 1);
  startBetween(
      call,
      {call.collective, everybody_, isRooted(call.collective) ? static_cast<int>(indexOf(everybody_, call.root)) : 0,
       mine.inPlace, call.count, cut(mine.send, mine.receive, call.count, chunk, sizeOf(call.type))},
      call.count);
  finishBetween();
}

const Algorithm& ClusterCommunicator::prefixInRankOrder(const Algorithm& chosen, const PlanRequest& request,
                                                        std::size_t bytes) {
  const auto isInOrder = [&](const Algorithm& algorithm) {
    const std::pair key{&algorithm, request.collective};
    const auto known = prefixesInOrder_.find(key);
    if (known != prefixesInOrder_.end()) return known->second;
    return prefixesInOrder_.emplace(key, combinesInRankOrder(algorithm, request)).first->second;
  };
  if (isInOrder(chosen)) return chosen;
  if (!forced().empty()) failOnOrder(chosen, request);
  for (const NetworkCandidate& candidate : betweenAll_.explain(request.collective, 0, bytes))
    if (candidate.isPossible && isInOrder(*candidate.algorithm)) return *candidate.algorithm;
  fail(taccInternalError, "no algorithm combines {} of {} ranks in their order", nameOf(request.collective), ranks());
}

/// In the order of the ranks, whatever hosts they are on.
void ClusterCommunicator::runPrefix(const Call& call, const UserBuffers& mine) {
  const std::size_t bytes = call.count * sizeOf(call.type);
  const PlanRequest request = betweenAll_.request(call.collective, 0);
  const Algorithm* algorithm = &algorithmFor(call.collective, inOrder_, 0, bytes);
  if (needsRankOrder(call, config().isReproducible)) algorithm = &prefixInRankOrder(*algorithm, request, bytes);
  const int blocks = programFor(*algorithm, betweenAll_, call.collective, 0, rank(), mine.inPlace).blocks;
  const std::size_t message = betweenAll_.messageBytes(call.collective, bytes, 1) / sizeOf(call.type);
  const std::size_t chunk = std::max<std::size_t>(1, message) * static_cast<std::size_t>(blocks);
  Between between{call.collective, inOrder_,   0,
                  mine.inPlace,    call.count, cut(mine.send, mine.receive, call.count, chunk, sizeOf(call.type))};
  between.algorithm = algorithm;
  startBetween(call, std::move(between), call.count);
  finishBetween();
}

void ClusterCommunicator::runDirect(const Call& call) {
  meetInNode();
  const std::size_t block = call.count * sizeOf(call.type);
  const bool isRoot = rank() == call.root;
  const auto toAll = call.collective == Collective::allToAll;
  const bool sendsBlocks = toAll || (call.collective == Collective::scatter && isRoot);
  const bool takesBlocks = toAll || (call.collective == Collective::gather && isRoot);
  std::byte* input = const_cast<std::byte*>(sendOf(call));
  if (toAll && call.send == call.receive) {
    input = workspace(block * everybody_.size());
    std::memcpy(input, call.send, block * everybody_.size());
  }
  const auto own = static_cast<std::size_t>(rank()) * block;
  std::vector<PointToPoint> operations;
  const auto send = [&](int peer, std::byte* data) { operations.push_back({true, peer, data, call.count, call.type}); };
  const auto take = [&](int peer, std::byte* data) {
    operations.push_back({false, peer, data, call.count, call.type});
  };
  if (sendsBlocks || takesBlocks) {
    const std::byte* from = sendsBlocks ? input + own : input;
    std::byte* to = takesBlocks ? receiveOf(call) + own : receiveOf(call);
    if (from != to) std::memmove(to, from, block);
  }
  // Every rank begins with the one after it, so that not all send to the same one.
  for (int step = 1; step < ranks(); ++step) {
    const int to = (rank() + step) % ranks(), from = (rank() - step + ranks()) % ranks();
    if (sendsBlocks) send(to, input + static_cast<std::size_t>(to) * block);
    if (takesBlocks) take(from, receiveOf(call) + static_cast<std::size_t>(from) * block);
  }
  if (call.collective == Collective::gather && !isRoot) send(call.root, input);
  if (call.collective == Collective::scatter && !isRoot) take(call.root, receiveOf(call));
  exchangeAll(operations, signature_, call_);
  lastAlgorithm_ = "direct";
}

void ClusterCommunicator::barrier() {
  std::uint8_t none = 0;
  auto* data = reinterpret_cast<std::byte*>(&none);
  const Call call{Collective::barrier, &none, &none, 1, taccUint8, taccMax};
  const bool wasInternal = std::exchange(internal_, true);
  startBetween(call, {Collective::allReduce, everybody_, 0, true, 1, {{data, data, 1}}}, 1);
  internal_ = wasInternal;
  finishBetween();
}

}  // namespace tacc
