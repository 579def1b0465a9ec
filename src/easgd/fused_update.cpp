#include "easgd/fused_update.hpp"

#include <cstring>
#include <vector>

#include "engine/direct_update.hpp"
#include "engine/signature.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {
namespace {

bool updateDirectlyByMean(Communicator& communicator, const LocalStep& step, std::size_t count, float rate) {
  const auto ranks = static_cast<std::size_t>(communicator.ranks());
  const auto own = static_cast<std::size_t>(communicator.rank());
  const auto update = [&](std::size_t first, std::size_t n, float* const* weights, float* const* gradients) {
    alignas(64) float sum[updateTile];
    std::vector<void*> others(ranks - 1);
    forEachTile(first, n, [&](std::size_t at, std::size_t tile) {
      std::memcpy(sum, gradients[0] + at, tile * sizeof(float));
      for (std::size_t r = 1; r < ranks; ++r) addTo(sum, gradients[r] + at, tile);
      // Weights are equal on all ranks: this one's serve for all.
      step.applyWith(at, tile, nullptr, sum, rate);
      std::size_t other = 0;
      for (std::size_t r = 0; r < ranks; ++r)
        if (r != own) others[other++] = weights[r] + at;
      if (!others.empty())
        copyBytes(others.data(), static_cast<int>(others.size()), weights[own] + at, tile * sizeof(float), true);
    });
  };
  auto* const gradient = const_cast<float*>(step.gradient);  // which the update only reads
  return communicator.updateDirectly({updateCode, step.weights, gradient, count, update});
}

}  // namespace

void allReduceUpdate(Communicator& communicator, const LocalStep& step, std::size_t count) {
  const float rate = step.rate / static_cast<float>(communicator.ranks());
  // Without a velocity, which each rank would have to make new, one rank's step serves all whose memory it reaches.
  if (step.velocity == nullptr && updateDirectlyByMean(communicator, step, count, rate)) return;
  const StreamedSum streamed{
      updateCode,
      [&](std::size_t first, std::size_t n, void* to) { std::memcpy(to, step.gradient + first, n * sizeof(float)); },
      [&](std::size_t first, std::size_t n, const void* sums) {
        step.applyWith(first, n, nullptr, static_cast<const float*>(sums), rate);
      }};
  communicator.run(
      {.collective = Collective::allReduce, .count = count, .type = taccFloat32, .op = taccSum, .streamed = &streamed});
}

}  // namespace tacc
