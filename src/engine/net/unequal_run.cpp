#include "engine/net/unequal_run.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/call_shape.hpp"
#include "engine/net/chunking.hpp"

namespace tacc {
namespace {

/// Cuts blocks into chunks of `message` elements: up to the longest block's end, or, with `isAlike`, all as long.
void cutBlocks(const Call& call, const std::byte* input, std::size_t longest, std::size_t message, bool isAlike,
               std::vector<NetworkChunk>& chunks) {
  const Chunking cut{longest, message};
  cut.cut(input, static_cast<std::byte*>(call.receive), sizeOf(call.type), chunks);
  for (std::size_t k = 0; k < chunks.size(); ++k) {
    chunks[k].first = cut.first(k);
    if (isAlike) chunks[k].elements = message;
  }
}

}  // namespace

Call UnequalRun::tellLength(const std::size_t& own) {
  lengths_.resize(at(run_.ranks().ranks()));
  return {.collective = Collective::allGather,
          .send = &own,
          .receive = lengths_.data(),
          .count = sizeof own,
          .type = taccUint8,
          .isInternal = true};
}

void UnequalRun::compareLengths(Collective collective, const BlockRow& all) const {
  for (std::size_t r = 0; r < lengths_.size(); ++r)
    if (all.counts[r] != lengths_[r])
      fail(taccInvalidUsage,
           "the counts of {}v differ: rank {} counts {} elements for rank {}, which counts {} for itself",
           nameOf(collective), run_.ranks().rank(), all.counts[r], r, lengths_[r]);
}

void UnequalRun::runKnown(const NetworkCall& planned, const BlockRow& all) {
  const Call& call = planned.call;
  blocks_.counts.clear();
  blocks_.ofPairs = false;
  blocks_.inputAt.assign(1, 0);
  blocks_.outputAt.assign(1, 0);
  std::vector<std::size_t>& places = call.collective == Collective::allGather ? blocks_.outputAt : blocks_.inputAt;
  places.clear();
  for (const int member : run_.ranks().members(planned.order)) {
    blocks_.counts.push_back(all.counts[at(member)]);
    places.push_back(all.offsets[at(member)]);
  }
  const bool inPlace = unequalBuffers(call, *call.blocks, run_.ranks().rank()).inPlace;
  cutBlocks(call, static_cast<const std::byte*>(call.send), all.longest(),
            elementsOf(planned.messageBytes, sizeOf(call.type)), false, run_.chunks());
  NetworkWork work = run_.workOf(call, planned.order, run_.programOf(planned, inPlace));
  work.blocks = &blocks_;
  run_.run(work);
}

void UnequalRun::runOfPairs(const NetworkCall& planned) {
  const Call& call = planned.call;
  const bool toAll = call.collective == Collective::allToAll;
  const std::byte* const input = toAll ? inputOf(call) : static_cast<const std::byte*>(call.send);
  takeBlocks(call);
  const bool inPlace = !toAll && unequalBuffers(call, *call.blocks, run_.ranks().rank()).inPlace;
  const std::size_t longest = std::max<std::size_t>(1, std::ranges::max(blocks_.counts));
  cutBlocks(call, input, longest, elementsOf(planned.messageBytes, sizeOf(call.type)), true, run_.chunks());
  NetworkWork work = run_.workOf(call, planned.order, run_.programOf(planned, inPlace));
  work.blocks = &blocks_;
  run_.run(work);
}

const std::byte* UnequalRun::inputOf(const Call& call) {
  const auto* const input = static_cast<const std::byte*>(call.send);
  const std::size_t bytes = call.blocks->send.extent() * sizeOf(call.type);
  if (call.send != call.receive || bytes == 0) return input;
  if (copy_.size() < bytes) copy_.resize(bytes);
  std::memcpy(copy_.data(), input, bytes);
  return copy_.data();
}

void UnequalRun::takeBlocks(const Call& call) {
  const PlanRanks& ranks = run_.ranks();
  const BlockRow &sent = call.blocks->send, &taken = call.blocks->receive;
  const bool toAll = call.collective == Collective::allToAll, gathers = call.collective == Collective::gather;
  const auto own = [&](const BlockRow& row) { return row.counts[row.counts.size() == 1 ? 0 : at(ranks.rank())]; };
  const bool isRoot = ranks.rank() == call.root;
  if ((toAll || isRoot) && own(sent) != own(taken))
    fail(taccInvalidUsage, "the counts of {}v differ: rank {} gives {} elements to itself and expects {}",
         nameOf(call.collective), ranks.rank(), own(sent), own(taken));

  blocks_.counts.clear();
  blocks_.inputAt.clear();
  blocks_.outputAt.clear();
  blocks_.ofPairs = true;
  const auto append = [&](const std::vector<std::size_t>& from, std::vector<std::size_t>& to) {
    for (const int member : ranks.members(PlanOrder::hosts)) to.push_back(from[at(member)]);
  };
  if (toAll) {
    append(sent.counts, blocks_.counts);
    append(taken.counts, blocks_.counts);
    append(sent.offsets, blocks_.inputAt);
    append(taken.offsets, blocks_.outputAt);
    return;
  }
  const BlockRow &all = gathers ? taken : sent, &one = gathers ? sent : taken;
  std::vector<std::size_t>& places = gathers ? blocks_.outputAt : blocks_.inputAt;
  (gathers ? blocks_.inputAt : blocks_.outputAt).assign(1, one.offsets[0]);
  if (isRoot) {
    append(all.counts, blocks_.counts);
    append(all.offsets, places);
  } else {
    blocks_.counts.assign(at(ranks.ranks()), 0);
    blocks_.counts[at(ranks.own(PlanOrder::hosts))] = one.counts[0];
  }
}

}  // namespace tacc
