#include "easgd/fused_update.hpp"

#include <cstring>

#include "comm/direct_update.hpp"
#include "comm/streamed_sum.hpp"

namespace tacc {
namespace {

bool updateDirectlyByMean(Communicator& communicator, const LocalStep& step, std::size_t count, float rate) {
  const auto ranks = static_cast<std::size_t>(communicator.ranks());
  const auto update = [&](std::size_t first, std::size_t n, float* const* weights, const float* const* gradients) {
    alignas(64) float sum[updateTile];
    LocalStep one = step;
    forEachTile(first, n, [&](std::size_t at, std::size_t tile) {
      std::memcpy(sum, gradients[0] + at, tile * sizeof(float));
      for (std::size_t r = 1; r < ranks; ++r) addTo(sum, gradients[r] + at, tile);
      for (std::size_t r = 0; r < ranks; ++r) {
        one.weights = weights[r];
        one.applyWith(at, tile, nullptr, sum, rate);
      }
    });
  };
  return communicator.updateDirectly({step.weights, step.gradient, count, update});
}

}  // namespace

void allReduceUpdate(Communicator& communicator, const LocalStep& step, std::size_t count) {
  const float rate = step.rate / static_cast<float>(communicator.ranks());
  // Without a velocity, which each rank would have to make new, one rank's step serves all whose memory it reaches.
  if (step.velocity == nullptr && updateDirectlyByMean(communicator, step, count, rate)) return;
  const StreamedSum streamed{
      [&](std::size_t first, std::size_t n, void* to) { std::memcpy(to, step.gradient + first, n * sizeof(float)); },
      [&](std::size_t first, std::size_t n, const void* sums) {
        step.applyWith(first, n, nullptr, static_cast<const float*>(sums), rate);
      }};
  communicator.run(
      {.collective = Collective::allReduce, .count = count, .type = taccFloat32, .op = taccSum, .streamed = &streamed});
}

}  // namespace tacc
