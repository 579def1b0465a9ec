#include "engine/net/half_width_run.hpp"

#include <algorithm>

#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"
#include "engine/net/chunking.hpp"
#include "engine/partition.hpp"

namespace tacc {
namespace {

/// One of the pieces that go together.
void runTogether(ChunkedRun& run, const Call& call, LibraryWindow& window, const HalfWidthPlan& plan) {
  constexpr std::size_t wideBytes = sizeof(float);
  const std::size_t size = sizeOf(call.type);
  const auto* input = static_cast<const std::byte*>(call.send);
  auto* output = static_cast<std::byte*>(call.receive);
  const NetworkParts& parts = run.programs().parts(plan.algorithm, run.ranks().own(PlanOrder::hosts));
  const int blocks = parts.sums.blocks;
  const Call sum{Collective::allReduce, nullptr, nullptr, call.count, taccFloat32, call.op};
  const Call result{Collective::allReduce, nullptr, nullptr, call.count, call.type, taccSum};
  const Chunking cut{call.count, chunkOf(plan.messageBytes, wideBytes, blocks)};
  auto* const numbers = window.atLeast(call.count * wideBytes);
  auto* const wide = reinterpret_cast<float*>(numbers);

  cut.cut(numbers, numbers, wideBytes, run.chunks());
  run.run(
      run.workOf(sum, PlanOrder::hosts, parts.sums),
      [&](std::size_t k) { widenToFloat(call.type, wide + cut.first(k), input + cut.first(k) * size, cut.length(k)); },
      [&](std::size_t k) {
        for (const ResultSplit::Blocks& done : parts.complete) {
          const std::size_t begin = blockBegin(cut.length(k), blocks, done.first, wideBytes);
          const std::size_t end = blockBegin(cut.length(k), blocks, done.first + done.count, wideBytes);
          narrowFromFloat(call.type, output + (cut.first(k) + begin) * size, wide + cut.first(k) + begin, end - begin);
        }
      });

  cut.cut(output, output, size, run.chunks());
  NetworkWork spread = run.workOf(result, PlanOrder::hosts, parts.results);
  spread.cutBytes = wideBytes;
  run.run(spread);
}

}  // namespace

void runHalfWidth(ChunkedRun& run, const Call& call, LibraryWindow& window,
                  const std::function<HalfWidthPlan(std::size_t)>& choose) {
  Call part = call;
  for (std::size_t begin = 0; begin < call.count; begin += halfWidthTogether) {
    const std::size_t offset = begin * sizeOf(call.type);
    part.count = std::min(halfWidthTogether, call.count - begin);
    part.send = static_cast<const std::byte*>(call.send) + offset;
    part.receive = static_cast<std::byte*>(call.receive) + offset;
    runTogether(run, part, window, choose(part.count));
  }
}

}  // namespace tacc
