#include "engine/net/chunked_run.hpp"

#include "core/types.hpp"
#include "engine/call_kernel.hpp"

namespace tacc {

NetworkWork ChunkedRun::workOf(const Call& call, PlanOrder order, const NetworkProgram& program) const {
  const std::size_t elementBytes = sizeOf(call.type);
  NetworkWork work;
  work.program = &program;
  work.members = ranks_.members(order);
  work.blockBytes = call.count * elementBytes;
  // Blocks of the caller's buffers are in the order of the ranks. Those of unequal lengths say where they begin.
  if (call.blocks == nullptr && ranks_.renumbers(order)) {
    work.places = ranks_.members(order);
    work.inputHasPlaces = call.collective != Collective::allGather && call.collective != Collective::gather;
    work.outputHasPlaces = call.collective != Collective::reduceScatter && call.collective != Collective::scatter;
  }
  work.elementBytes = elementBytes;
  work.reduce = kernelOf(call, taccNumOps);
  work.divisor = call.op == taccAvg ? ranks_.ranks() : 1;
  work.rank = ranks_.rank();
  work.signature = signature_;
  work.call = number_;
  work.window = chunksUnderWay;
  return work;
}

void ChunkedRun::start(const NetworkWork& work, std::size_t released) {
  NetworkWork cut = work;
  cut.chunks = chunks_;
  wait_.guard(&run_, [&] { run_.start(cut, released); });
}

void ChunkedRun::finish() {
  wait_.run(run_, [this] { return run_.isFinished(); });
}

void ChunkedRun::run(const NetworkWork& work) {
  start(work, chunks_.size());
  finish();
}

void ChunkedRun::run(const NetworkWork& work, const std::function<void(std::size_t)>& before,
                     const std::function<void(std::size_t)>& after) {
  const std::size_t chunks = chunks_.size();
  start(work, 0);
  for (std::size_t k = 0; k < chunks + chunksUnderWay; ++k) {
    if (k < chunks) {
      before(k);
      run_.release(k + 1);
      wait_.guard(&run_, [&] { run_.advance(); });
    }
    if (k < chunksUnderWay || k - chunksUnderWay >= chunks) continue;
    const std::size_t done = k - chunksUnderWay;
    wait_.run(run_, [&] { return run_.completed() > done; });
    after(done);
  }
  finish();
}

}  // namespace tacc
