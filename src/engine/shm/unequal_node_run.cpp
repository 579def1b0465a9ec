#include "engine/shm/unequal_node_run.hpp"

#include <algorithm>
#include <cstring>

#include "core/index.hpp"
#include "core/types.hpp"
#include "engine/call_kernel.hpp"
#include "engine/call_shape.hpp"
#include "engine/signature.hpp"

namespace tacc {

UnequalNodeRun::UnequalNodeRun(NodeRun& run, const Waiter& waiter, CallExchange& exchange, AreaPages& pages,
                               std::size_t eagerBytes)
    : run_(run),
      pages_(pages),
      exchange_(run.rank(), run.ranks(), exchange, eagerBytes, [&waiter](int rank) { return waiter.nameOf(rank); }) {}

UnequalNodeRun::Left UnequalNodeRun::begin(const Call& call, std::uint64_t signature, bool mayTake) {
  elementBytes_ = sizeOf(call.type);
  const UnequalExchange::OwnCall mine{.collective = call.collective,
                                      .root = call.root,
                                      .mine = call.blocks,
                                      .send = static_cast<const std::byte*>(call.send),
                                      .receive = static_cast<std::byte*>(call.receive),
                                      .elementBytes = elementBytes_};
  pages_.need(AreaPart::eager);
  if (exchange_.run(signature, mine, mayTake)) return Left::nothing;
  if (!exchange_.isRepeated()) {
    longest_ = 0;
    for (const UnequalBlocks& of : exchange_.blocks())
      longest_ = std::max({longest_, of.send.longest(), of.receive.longest()});
  }
  if (longest_ == 0) return Left::nothing;
  if (run_.ranks() == 1) {
    std::byte* const to = mine.receive + call.blocks->receive.offsets[0] * elementBytes_;
    const std::byte* const from = mine.send + call.blocks->send.offsets[0] * elementBytes_;
    if (to != from) std::memmove(to, from, longestBytes());
    return Left::nothing;
  }
  if (!mayTake || !(exchange_.hasData() || exchange_.haveSomeLeft())) return Left::plan;
  const ReduceKernel reduce = isReduction(call.collective) ? kernelOf(call, firstSumCode) : ReduceKernel{};
  exchange_.take(mine, reduce, call.op == taccAvg ? run_.ranks() : 1);
  return exchange_.hasData() ? Left::nothing : Left::messages;
}

std::span<const PointToPoint> UnequalNodeRun::messages(const Call& call) {
  messages_.clear();
  const BlockRow &gives = call.blocks->send, &expects = call.blocks->receive;
  if (run_.rank() != call.root) {
    // A message that is sent is read alone.
    auto* const block = static_cast<std::byte*>(const_cast<void*>(call.send)) + gives.offsets[0] * elementBytes_;
    messages_.push_back({true, call.root, block, gives.counts[0], call.type});
    return messages_;
  }
  for (int from = 0; from < run_.ranks(); ++from)
    if (from != call.root && !exchange_.hasDataOf(from))
      messages_.push_back({false, from,
                           static_cast<std::byte*>(call.receive) + expects.offsets[at(from)] * elementBytes_,
                           expects.counts[at(from)], call.type});
  return messages_;
}

LoweringFacts UnequalNodeRun::meet(const Call& call, std::uint64_t signature) {
  UserBuffers mine = usedBuffers(call, run_.rank(), run_.ranks());
  if (call.collective == Collective::allToAll && call.send == call.receive && mine.sendBytes != 0) {
    if (input_.size() < mine.sendBytes) input_.resize(mine.sendBytes);
    std::memcpy(input_.data(), mine.send, mine.sendBytes);
    mine.send = input_.data();
  }
  return run_.meet(call, signature, mine, exchange_.blocks(), longest_);
}

void UnequalNodeRun::run(const Call& call, const NodePlan& plan, const PlanDemands& demands) {
  run_.run(call, plan, demands, exchange_.blocks(), longest_);
}

}  // namespace tacc
