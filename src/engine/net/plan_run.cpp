#include "engine/net/plan_run.hpp"

#include "core/types.hpp"
#include "engine/call_shape.hpp"
#include "engine/net/chunking.hpp"

namespace tacc {
namespace {

/// Bytes of all blocks, up to which copying them costs less than sending them one by one.
constexpr std::size_t copiedLimit = 256 * 1024;

/// Whether blocks are brought into the order of the plan first, or out of it at the end.
bool copiesBlocks(const PlanRanks& ranks, const NetworkCall& planned) {
  const Call& call = planned.call;
  if (call.collective != Collective::allGather && call.collective != Collective::reduceScatter) return false;
  const std::size_t bytes = call.count * sizeOf(call.type);
  return ranks.renumbers(planned.order) && bytes > 0 && bytes * at(ranks.ranks()) <= copiedLimit;
}

}  // namespace

void runPlan(ChunkedRun& run, const NetworkCall& planned) {
  const Call& call = planned.call;
  const std::size_t size = sizeOf(call.type);
  UserBuffers mine = usedBuffers(call, run.ranks().rank(), run.ranks().ranks());
  const bool copies = copiesBlocks(run.ranks(), planned);
  if (copies) {
    mine.send = static_cast<const std::byte*>(call.send);
    mine.inPlace = false;
  }
  const NetworkProgram& program = run.programOf(planned, mine.inPlace);
  const std::size_t chunk = copies ? call.count : chunkOf(planned.messageBytes, size, program.blocks);
  Chunking{call.count, chunk}.cut(mine.send, mine.receive, size, run.chunks());
  NetworkWork work = run.workOf(call, planned.order, program);
  work.copiesBlocks = copies;
  run.run(work);
}

}  // namespace tacc
