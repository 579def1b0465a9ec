#include <algorithm>
#include <cmath>

#include "compute/conv/shape.hpp"
#include "compute/layers/layers.hpp"
#include "compute/layers/pixel_sums.hpp"
#include "core/error.hpp"

namespace tacc::layers {

void reluBackward(const float* output, const float* outputGradient, float* inputGradient, std::size_t count,
                  const LayerKernels& kernels) {
  const bool isInPlace = inputGradient == outputGradient || inputGradient == output;
  kernels.reluBackward(output, outputGradient, inputGradient, count,
                       !isInPlace && isTooLargeForCaches(count * sizeof(float)));
}

void biasGradient(const float* outputGradient, float* gradient, int batch, int channels, std::ptrdiff_t pixels,
                  bool accumulate, const LayerKernels& kernels) {
  constexpr int length = conv::blockLength;
  const int blocks = conv::ceilDivide(channels, length);
  for (int block = 0; block < blocks; ++block) {
    alignas(64) float total[length] = {};
    for (int n = 0; n < batch; ++n) {
      addAllPixels(outputGradient + (std::ptrdiff_t{n} * blocks + block) * pixels * length, pixels, total, kernels);
    }
    for (int c = 0; c < std::min(length, channels - block * length); ++c) {
      float& to = gradient[block * length + c];
      to = accumulate ? to + total[c] : total[c];
    }
  }
}

double softmaxLoss(const float* scores, const int* labels, float* gradient, int rows, int classes) {
  for (int i = 0; i < rows; ++i) {
    if (labels[i] < 0 || labels[i] >= classes) {
      fail(taccInvalidArgument, "label {} is {}; there are classes 0 to {}", i, labels[i], classes - 1);
    }
  }
  double loss = 0;
  for (int i = 0; i < rows; ++i) {
    const float* const row = scores + std::ptrdiff_t{i} * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (int j = 0; j < classes; ++j) sum += std::exp(row[j] - largest);
    loss += std::log(sum) + largest - row[labels[i]];
    for (int j = 0; j < classes && gradient != nullptr; ++j) {
      const double probability = std::exp(row[j] - largest) / sum;
      gradient[std::ptrdiff_t{i} * classes + j] = static_cast<float>((probability - (j == labels[i] ? 1 : 0)) / rows);
    }
  }
  return loss / rows;
}

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
