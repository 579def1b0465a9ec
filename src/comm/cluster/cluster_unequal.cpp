// Calls over several hosts whose blocks have unequal lengths.
//
// Allgather and reduce-scatter run the plan of their collective over blocks of these lengths. Before that every rank
// tells all its own length, so that a rank that was told another one finds it out before anything moves: which of the
// plans runs, and so who waits for whom, depends on the lengths. The others go straight between all pairs, each of
// which compares what the one gives with what the other expects.
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
#include "engine/unequal_exchange.hpp"

namespace tacc {

void ClusterCommunicator::runUnequal(const Call& call) {
  endpoint_.beginIdle();
  if (node_) node_->announce(signature_);
  meetInNode();
  if (goesDirect(call.collective)) return directUnequal(call);
  const bool gathers = call.collective == Collective::allGather;
  const BlockRow& all = gathers ? call.blocks->receive : call.blocks->send;
  const BlockRow& own = gathers ? call.blocks->send : call.blocks->receive;
  compareLengths(call.collective, all, own.counts[0]);
  lastAlgorithm_ = "";
  if (all.longest() > 0) planUnequal(call, all);
}

void ClusterCommunicator::compareLengths(Collective collective, const BlockRow& all, std::size_t own) {
  lengths_.resize(static_cast<std::size_t>(ranks()));
  const Call tell{Collective::allGather, &own, lengths_.data(), sizeof own, taccUint8};
  const bool wasInternal = std::exchange(internal_, true);
  runPlan(tell);
  internal_ = wasInternal;
  for (std::size_t r = 0; r < lengths_.size(); ++r)
    if (all.counts[r] != lengths_[r])
      fail(taccInvalidUsage,
           "the counts of {}v differ: rank {} counts {} elements for rank {}, which counts {} for itself",
           nameOf(collective), rank(), all.counts[r], r, lengths_[r]);
}

const Algorithm& ClusterCommunicator::algorithmForBlocks(const Call& call, const std::vector<int>& members,
                                                         std::size_t bytes, bool inRankOrder) {
  NetworkChooser& chooser = chooserFor(members);
  const PlanRequest request = chooser.request(call.collective, 0);
  const auto place = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  // One pass over all contributions: in rank order, and rounded once.
  const bool onePass = inRankOrder || (isReduction(call.collective) && isHalfWidth(call.type) && call.user == nullptr);
  const auto serves = [&](const Algorithm& algorithm) {
    return algorithm.serves(request) && (algorithm.sumsInOnePass || !onePass) &&
           programFor(algorithm, chooser, call.collective, 0, place, false).namesBlocks;
  };
  if (!forced().empty()) {
    const Algorithm& algorithm = selectAlgorithm({request, bytes, false, forced()}, {});
    if (serves(algorithm)) return algorithm;
    if (inRankOrder) failOnOrder(algorithm, request);
    fail(taccInvalidUsage, "algorithm {} does not serve {}v of {} on {} ranks; these do: {}", algorithm.name,
         nameOf(call.collective), nameOf(call.type), ranks(), namesOfThose(serves));
  }
  for (const NetworkCandidate& candidate : chooser.explain(call.collective, 0, bytes))
    if (candidate.isPossible && serves(*candidate.algorithm)) return *candidate.algorithm;
  fail(taccInternalError, "no algorithm serves {}v of {} on {} ranks", nameOf(call.collective), nameOf(call.type),
       ranks());
}

void ClusterCommunicator::planUnequal(const Call& call, const BlockRow& all) {
  const std::size_t size = sizeOf(call.type), longest = all.longest();
  std::size_t elements = 0;
  for (const std::size_t count : all.counts) elements += count;
  const bool inRankOrder = needsRankOrder(call, config().isReproducible);
  const bool halves = isReduction(call.collective) && isHalfWidth(call.type) && call.user == nullptr;
  const std::vector<int>& members = inRankOrder || halves ? inOrder_ : everybody_;
  const std::size_t mean = (elements * size + members.size() - 1) / members.size();
  const Algorithm& algorithm = algorithmForBlocks(call, members, mean, inRankOrder);

  const bool gathers = call.collective == Collective::allGather;
  blocks_.counts.clear();
  blocks_.inputAt.assign(1, 0);
  blocks_.outputAt.assign(1, 0);
  std::vector<std::size_t>& places = gathers ? blocks_.outputAt : blocks_.inputAt;
  places.clear();
  for (const int member : members) {
    blocks_.counts.push_back(all.counts[static_cast<std::size_t>(member)]);
    places.push_back(all.offsets[static_cast<std::size_t>(member)]);
  }
  const UserBuffers mine = unequalBuffers(call, *call.blocks, rank());
  const std::size_t message =
      std::max<std::size_t>(1, chooserFor(members).messageBytes(call.collective, longest * size, 1) / size);
  Between between{call.collective, members, 0, mine.inPlace, longest, {}};
  const auto* input = static_cast<const std::byte*>(call.send);
  auto* output = static_cast<std::byte*>(call.receive);
  for (std::size_t first = 0; first < longest; first += message)
    between.chunks.push_back({input == nullptr ? nullptr : input + first * size,
                              output == nullptr ? nullptr : output + first * size, std::min(message, longest - first),
                              first});
  between.algorithm = &algorithm;
  between.blocks = &blocks_;
  startBetween(call, std::move(between), longest);
  finishBetween();
}

void ClusterCommunicator::directUnequal(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const BlockRow &sent = call.blocks->send, &taken = call.blocks->receive;
  const auto self = static_cast<std::size_t>(rank());
  auto* input = static_cast<std::byte*>(const_cast<void*>(call.send));
  if (call.collective == Collective::allToAll && call.send == call.receive && sent.extent() != 0) {
    std::byte* const copy = workspace(sent.extent() * size);
    std::memcpy(copy, input, sent.extent() * size);
    input = copy;
  }
  auto* const output = static_cast<std::byte*>(call.receive);
  std::vector<PointToPoint> operations;
  const auto add = [&](bool isSend, int peer) {
    const BlockRow& row = isSend ? sent : taken;
    const std::size_t block = row.counts.size() == 1 ? 0 : static_cast<std::size_t>(peer);
    std::byte* const base = isSend ? input : output;
    operations.push_back(
        {isSend, peer, base == nullptr ? nullptr : base + row.offsets[block] * size, row.counts[block], call.type});
  };
  const bool isRoot = rank() == call.root;
  const bool toAll = call.collective == Collective::allToAll, gathers = call.collective == Collective::gather;
  if (toAll || isRoot) {
    const std::size_t from = sent.counts.size() == 1 ? 0 : self, to = taken.counts.size() == 1 ? 0 : self;
    if (sent.counts[from] != taken.counts[to])
      fail(taccInvalidUsage, "the counts of {}v differ: rank {} gives {} elements to itself and expects {}",
           nameOf(call.collective), rank(), sent.counts[from], taken.counts[to]);
    if (sent.counts[from] != 0)
      std::memmove(output + taken.offsets[to] * size, input + sent.offsets[from] * size, sent.counts[from] * size);
  }
  // Every rank begins with the one after it, so that not all send to the same one.
  for (int step = 1; step < ranks(); ++step) {
    const int to = (rank() + step) % ranks(), from = (rank() - step + ranks()) % ranks();
    if (toAll || (isRoot && !gathers)) add(true, to);
    if (toAll || (isRoot && gathers)) add(false, from);
  }
  if (!toAll && !isRoot) add(gathers, call.root);
  exchangeAll(operations, signature_, call_);
  lastAlgorithm_ = "direct";
}

}  // namespace tacc
