// Calls on a host whose blocks have unequal lengths: all ranks learn all lengths first, then the plan of the same
// collective runs over blocks of these lengths.
#include <algorithm>
#include <cstring>

#include "comm/call_demands.hpp"
#include "comm/call_signature.hpp"
#include "comm/node/node_communicator.hpp"
#include "core/error.hpp"
#include "core/types.hpp"
#include "engine/call_kernel.hpp"
#include "engine/call_shape.hpp"

namespace tacc {

void NodeCommunicator::runUnequal(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const auto* send = static_cast<const std::byte*>(call.send);
  membership_.pages.need(AreaPart::eager);
  unequal_.run(signatureOf(call), call.collective, call.root, *call.blocks, send, size);
  const std::vector<UnequalBlocks>& blocks = unequal_.blocks();
  compareBlocks(call.collective, call.root, blocks, [this](int rank) { return waiter_.nameOf(rank); });
  std::size_t longest = 0;
  for (const UnequalBlocks& of : blocks) longest = std::max({longest, of.send.longest(), of.receive.longest()});
  lastAlgorithm_ = "eager";
  if (longest == 0) return;
  if (ranks() == 1) {
    std::byte* const to = static_cast<std::byte*>(call.receive) + call.blocks->receive.offsets[0] * size;
    const std::byte* const from = send + call.blocks->send.offsets[0] * size;
    if (to != from) std::memmove(to, from, longest * size);
    return;
  }
  if (unequal_.hasData() && forced().empty()) {
    const ReduceKernel reduce = isReduction(call.collective) ? kernelOf(call, firstSumCode) : ReduceKernel{};
    return unequal_.take(call.collective, call.root, static_cast<std::byte*>(call.receive), reduce,
                         call.op == taccAvg ? ranks() : 1);
  }
  planUnequal(call, longest);
}

void NodeCommunicator::planUnequal(const Call& call, std::size_t longest) {
  const std::size_t size = sizeOf(call.type);
  const std::vector<UnequalBlocks>& blocks = unequal_.blocks();
  exchange_.begin(signatureOf(call), linePayload);
  UserBuffers mine = usedBuffers(call, rank(), ranks());
  if (call.collective == Collective::allToAll && call.send == call.receive && mine.sendBytes != 0) {
    if (unequalInput_.size() < mine.sendBytes) unequalInput_.resize(mine.sendBytes);
    std::memcpy(unequalInput_.data(), mine.send, mine.sendBytes);
    mine.send = unequalInput_.data();
  }
  const auto buffersOf = [&](int peer) { return unequalBuffers(call, blocks[static_cast<std::size_t>(peer)], peer); };
  auto [facts, slowest] = buffers_.run(mine, buffersOf, lastSeconds_, callBuffers_);
  plannedPolicies_.record(slowest);
  facts.output = Access::staged;  // where a block begins in a peer's output only that rank knows
  const CopyPolicy policy = plannedPolicies_.choose(
      call.collective, copyPolicyKindOf(LoweringFacts{facts.input, facts.input, false}), longest * size);
  if (!policy.throughKernel && facts.input == Access::cma) facts.input = Access::staged;

  CallShape shape = shapeOf(call);
  shape.bytes = longest * size;
  shape.forced = forced();
  const Algorithm& algorithm = selectAlgorithm(shape, facts);
  CachedProgram& cached = programs_.get(algorithm, shape.request, facts);
  ProgramCache::demand(cached, algorithm, shape.request, demandsOf(call, config().isReproducible));
  const Schedule& schedule = cached.scheduleFor(longest, size, [&] { return limitsOf(shape); });
  membership_.pages.need(AreaPart::arena);
  executor_.run(cached.program, schedule, callBuffers_,
                {.count = longest,
                 .elementBytes = size,
                 .reduce = kernelOf(call, firstSumCode),
                 .divisor = call.op == taccAvg ? ranks() : 1,
                 .nonTemporalSlots = policy.nonTemporalSlots,
                 .nonTemporalResults = false,
                 .blocks = &blocks});
  buffers_.finish();
  lastAlgorithm_ = algorithm.name;
}

}  // namespace tacc
