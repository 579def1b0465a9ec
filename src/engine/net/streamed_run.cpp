#include "engine/net/streamed_run.hpp"

#include <algorithm>

#include "core/types.hpp"
#include "engine/net/chunking.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

void runStreamed(ChunkedRun& run, const NetworkCall& planned, LibraryWindow& window) {
  constexpr std::size_t windows = ChunkedRun::chunksUnderWay + 1;
  const Call& call = planned.call;
  const StreamedSum& sum = *call.streamed;
  const std::size_t size = sizeOf(call.type);
  const NetworkProgram& program = run.programOf(planned, true);
  const Chunking cut{call.count, std::min(call.count, chunkOf(planned.messageBytes, size, program.blocks))};
  std::byte* const ring = window.atLeast(windows * cut.chunk * size);
  const auto place = [&](std::size_t k) { return ring + k % windows * cut.chunk * size; };

  run.chunks().clear();
  for (std::size_t k = 0; k < cut.chunks(); ++k) run.chunks().push_back({place(k), place(k), cut.length(k)});
  run.run(
      run.workOf(call, planned.order, program), [&](std::size_t k) { sum.make(cut.first(k), cut.length(k), place(k)); },
      [&](std::size_t k) { sum.take(cut.first(k), cut.length(k), place(k)); });
}

}  // namespace tacc
