#include "compute/layers/dropout.hpp"

#include <algorithm>
#include <cmath>

namespace tacc::layers {

void dropout(const float* input, float* output, std::size_t count, float rate, std::uint64_t seed, std::uint64_t step,
             const LayerKernels& kernels, const conv::TaskExecutor& executor) {
  constexpr std::size_t groupLength = 128;  // of the kernels
  constexpr std::size_t taskLength = 256 * groupLength;
  // What is kept makes up for what is really dropped, so the rate is rounded before it is used for either.
  const auto share = static_cast<std::uint32_t>(std::min(std::lround(double{rate} * 0x1p16), 0xFFFFL));
  const std::uint32_t threshold = share << 16;
  const float factor = 0x1p16F / (0x1p16F - static_cast<float>(share));
  executor.forEach((count + taskLength - 1) / taskLength, [&](std::size_t index, int) {
    const std::size_t from = index * taskLength;
    kernels.dropout({input + from, output + from, std::min(taskLength, count - from), from / groupLength, seed, step,
                     threshold, factor, input != output && isTooLargeForCaches(count * sizeof(float))});
  });
}

}  // namespace tacc::layers
