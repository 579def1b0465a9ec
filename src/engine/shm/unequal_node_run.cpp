#include "engine/shm/unequal_node_run.hpp"

#include <algorithm>
#include <cstring>

#include "core/types.hpp"
#include "engine/call_kernel.hpp"
#include "engine/call_shape.hpp"
#include "engine/signature.hpp"

namespace tacc {

UnequalNodeRun::UnequalNodeRun(NodeRun& run, const Waiter& waiter, CallExchange& exchange, AreaPages& pages,
                               std::size_t eagerBytes)
    : run_(run), waiter_(waiter), pages_(pages), exchange_(run.rank(), run.ranks(), exchange, eagerBytes) {}

bool UnequalNodeRun::begin(const Call& call, std::uint64_t signature, bool mayTake) {
  elementBytes_ = sizeOf(call.type);
  const auto* send = static_cast<const std::byte*>(call.send);
  pages_.need(AreaPart::eager);
  exchange_.run(signature, call.collective, call.root, *call.blocks, send, elementBytes_);
  const std::vector<UnequalBlocks>& blocks = exchange_.blocks();
  if (!exchange_.isRepeated()) {
    compareBlocks(call.collective, call.root, blocks, [this](int rank) { return waiter_.nameOf(rank); });
    longest_ = 0;
    for (const UnequalBlocks& of : blocks) longest_ = std::max({longest_, of.send.longest(), of.receive.longest()});
  }
  if (longest_ == 0) return true;
  if (run_.ranks() == 1) {
    std::byte* const to = static_cast<std::byte*>(call.receive) + call.blocks->receive.offsets[0] * elementBytes_;
    const std::byte* const from = send + call.blocks->send.offsets[0] * elementBytes_;
    if (to != from) std::memmove(to, from, longestBytes());
    return true;
  }
  if (!mayTake || !exchange_.hasData()) return false;
  const ReduceKernel reduce = isReduction(call.collective) ? kernelOf(call, firstSumCode) : ReduceKernel{};
  exchange_.take(call.collective, call.root, static_cast<std::byte*>(call.receive), reduce,
                 call.op == taccAvg ? run_.ranks() : 1);
  return true;
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
