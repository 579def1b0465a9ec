// Calls over several hosts whose blocks have unequal lengths.
//
// Allgather and reduce-scatter run the plan of their collective over blocks of these lengths. Before that every rank
// tells all its own length, so that a rank that was told another one finds it out before anything moves: which of the
// plans runs, and so who waits for whom, depends on the lengths. Of the others a rank knows the lengths of its own
// blocks alone, so they run plans in which nobody handles another's; each pair compares what the one gives with what
// the other expects.
#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/call_demands.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/call_shape.hpp"
#include "engine/unequal_exchange.hpp"

namespace tacc {

void ClusterCommunicator::runUnequal(const Call& call) {
  endpoint_.beginIdle();
  if (node_) node_->announce(signature_);
  if (call.collective != Collective::allGather && call.collective != Collective::reduceScatter)
    return exchangeUnequal(call);
  const bool gathers = call.collective == Collective::allGather;
  const BlockRow& all = gathers ? call.blocks->receive : call.blocks->send;
  const BlockRow& own = gathers ? call.blocks->send : call.blocks->receive;
  compareLengths(call.collective, all, own.counts[0]);
  lastAlgorithm_ = "";
  if (all.longest() > 0) planUnequal(call, all);
}

void ClusterCommunicator::compareLengths(Collective collective, const BlockRow& all, std::size_t own) {
  lengths_.resize(static_cast<std::size_t>(ranks()));
  runPlan({.collective = Collective::allGather,
           .send = &own,
           .receive = lengths_.data(),
           .count = sizeof own,
           .type = taccUint8,
           .isInternal = true});
  for (std::size_t r = 0; r < lengths_.size(); ++r)
    if (all.counts[r] != lengths_[r])
      fail(taccInvalidUsage,
           "the counts of {}v differ: rank {} counts {} elements for rank {}, which counts {} for itself",
           nameOf(collective), rank(), all.counts[r], r, lengths_[r]);
}

void ClusterCommunicator::planUnequal(const Call& call, const BlockRow& all) {
  const std::size_t size = sizeOf(call.type), longest = all.longest();
  std::size_t elements = 0;
  for (const std::size_t count : all.counts) elements += count;
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  const std::vector<int>& members = demands.rankOrder || demands.oneRounding ? inOrder_ : everybody_;
  const std::size_t mean = (elements * size + members.size() - 1) / members.size();
  const Algorithm& algorithm = algorithmFor(call, 0, mean, demands);

  const bool gathers = call.collective == Collective::allGather;
  blocks_.counts.clear();
  blocks_.ofPairs = false;
  blocks_.inputAt.assign(1, 0);
  blocks_.outputAt.assign(1, 0);
  std::vector<std::size_t>& places = gathers ? blocks_.outputAt : blocks_.inputAt;
  places.clear();
  for (const int member : members) {
    blocks_.counts.push_back(all.counts[static_cast<std::size_t>(member)]);
    places.push_back(all.offsets[static_cast<std::size_t>(member)]);
  }
  const UserBuffers mine = unequalBuffers(call, *call.blocks, rank());
  const std::size_t message = std::max<std::size_t>(1, selector_.messageBytes(call.collective, longest * size) / size);
  PlanRun run{call.collective, algorithm, members, 0, mine.inPlace, longest, {}};
  const auto* input = static_cast<const std::byte*>(call.send);
  auto* output = static_cast<std::byte*>(call.receive);
  for (std::size_t first = 0; first < longest; first += message)
    run.chunks.push_back({input == nullptr ? nullptr : input + first * size,
                          output == nullptr ? nullptr : output + first * size, std::min(message, longest - first),
                          first});
  run.blocks = &blocks_;
  start(call, std::move(run), longest);
  finish();
}

void ClusterCommunicator::exchangeUnequal(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const BlockRow &sent = call.blocks->send, &taken = call.blocks->receive;
  const bool toAll = call.collective == Collective::allToAll, gathers = call.collective == Collective::gather;
  const auto* input = static_cast<const std::byte*>(call.send);
  if (toAll && call.send == call.receive && sent.extent() != 0) {
    std::byte* const copy = workspace(sent.extent() * size);
    std::memcpy(copy, input, sent.extent() * size);
    input = copy;
  }
  auto* const output = static_cast<std::byte*>(call.receive);
  const auto self = static_cast<std::size_t>(rank());
  const auto own = [&](const BlockRow& row) { return row.counts[row.counts.size() == 1 ? 0 : self]; };
  const bool isRoot = rank() == call.root;
  if ((toAll || isRoot) && own(sent) != own(taken))
    fail(taccInvalidUsage, "the counts of {}v differ: rank {} gives {} elements to itself and expects {}",
         nameOf(call.collective), rank(), own(sent), own(taken));

  blocks_.counts.clear();
  blocks_.inputAt.clear();
  blocks_.outputAt.clear();
  blocks_.ofPairs = true;
  const auto append = [this](const std::vector<std::size_t>& from, std::vector<std::size_t>& to) {
    for (const int member : everybody_) to.push_back(from[static_cast<std::size_t>(member)]);
  };
  const auto member = static_cast<std::size_t>(std::ranges::find(everybody_, rank()) - everybody_.begin());
  if (toAll) {
    append(sent.counts, blocks_.counts);
    append(taken.counts, blocks_.counts);
    append(sent.offsets, blocks_.inputAt);
    append(taken.offsets, blocks_.outputAt);
  } else {
    const BlockRow &all = gathers ? taken : sent, &one = gathers ? sent : taken;
    std::vector<std::size_t>& places = gathers ? blocks_.outputAt : blocks_.inputAt;
    (gathers ? blocks_.inputAt : blocks_.outputAt).assign(1, one.offsets[0]);
    if (isRoot) {
      append(all.counts, blocks_.counts);
      append(all.offsets, places);
    } else {
      blocks_.counts.assign(everybody_.size(), 0);
      blocks_.counts[member] = one.counts[0];
    }
  }

  const int root = toAll ? 0 : static_cast<int>(std::ranges::find(everybody_, call.root) - everybody_.begin());
  // Cut by what is equal on all ranks, which the lengths are not.
  const std::size_t bytes = selector_.messageBytes(call.collective, 1),
                    message = std::max<std::size_t>(1, bytes / size);
  const Algorithm& algorithm = selector_.choose(call.collective, root, bytes, {}, {.straightBlocks = true});
  const bool inPlace = !toAll && unequalBuffers(call, *call.blocks, rank()).inPlace;
  PlanRun run{call.collective, algorithm, everybody_, root, inPlace, message, {}};
  const std::size_t longest = std::max<std::size_t>(1, std::ranges::max(blocks_.counts));
  for (std::size_t first = 0; first < longest; first += message)
    run.chunks.push_back({input == nullptr ? nullptr : input + first * size,
                          output == nullptr ? nullptr : output + first * size, message, first});
  run.blocks = &blocks_;
  start(call, std::move(run), longest);
  finish();
}

}  // namespace tacc
