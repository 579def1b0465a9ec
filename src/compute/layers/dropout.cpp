#include "compute/layers/dropout.hpp"

#include <algorithm>

namespace tacc::layers {

void dropout(const float* input, float* output, std::size_t count, float rate, std::uint64_t seed, std::uint64_t step,
             const KernelTable& kernels, const conv::Executor& executor) {
  constexpr std::size_t groupLength = 64;  // of the kernels
  constexpr std::size_t taskLength = 512 * groupLength;
  const auto threshold = static_cast<std::uint32_t>(double{rate} * 0x1p32);
  const float factor = 1 / (1 - rate);
  executor.forEach((count + taskLength - 1) / taskLength, [&](std::size_t index, int) {
    const std::size_t from = index * taskLength;
    kernels.dropout({input + from, output + from, std::min(taskLength, count - from), from / groupLength, seed, step,
                     threshold, factor, input != output && isTooLargeForCaches(count * sizeof(float))});
  });
}

}  // namespace tacc::layers
