#include <algorithm>
#include <cmath>

#include "compute/conv/shape.hpp"
#include "compute/layers/layers.hpp"
#include "core/error.hpp"

namespace tacc::layers {
namespace {

using conv::blockLength;

/// Pixels of a chunk: it stays in the L1 cache while it is read twice.
constexpr std::ptrdiff_t chunkPixels = 128;

std::ptrdiff_t pixelsOf(const taccBatchNormDesc_t& d) { return std::ptrdiff_t{d.height} * d.width; }
double countOf(const taccBatchNormDesc_t& d) { return static_cast<double>(d.batch) * static_cast<double>(pixelsOf(d)); }
int blocksOf(const taccBatchNormDesc_t& d) { return conv::ceilDivide(d.channels, blockLength); }

std::size_t bytesOf(const taccBatchNormDesc_t& d) {
  return conv::tensorFloats(taccLayoutNchw16c, d.batch, d.channels, d.height, d.width) * sizeof(float);
}

/// Where the pixels of a block of an image begin.
std::ptrdiff_t planeAt(const taccBatchNormDesc_t& d, int image, int block) {
  return (std::ptrdiff_t{image} * blocksOf(d) + block) * pixelsOf(d) * blockLength;
}

/// Calls visit(first float, pixels) for the chunks of a block of all images, in order.
template <class Visit>
void forEachChunk(const taccBatchNormDesc_t& d, int block, const Visit& visit) {
  for (int image = 0; image < d.batch; ++image) {
    for (std::ptrdiff_t from = 0; from < pixelsOf(d); from += chunkPixels) {
      visit(planeAt(d, image, block) + from * blockLength, std::min(chunkPixels, pixelsOf(d) - from));
    }
  }
}

/// The numbers of a block of channels out of an array of all; zeros beyond the last channel.
struct OfBlock {
  OfBlock() = default;
  OfBlock(const float* all, int channels, int block) {
    std::copy_n(all + block * blockLength, std::min(blockLength, channels - block * blockLength), values);
  }
  alignas(64) float values[blockLength] = {};
};

struct Statistics {
  double mean[blockLength] = {}, variance[blockLength] = {};  // the variance of the batch itself
};

Statistics statisticsOf(const taccBatchNormDesc_t& d, const float* input, int block, const LayerKernels& kernels) {
  Statistics result;
  double count = 0;
  forEachChunk(d, block, [&](std::ptrdiff_t at, std::ptrdiff_t pixels) {
    float mean[blockLength], squares[blockLength];
    kernels.moments(input + at, pixels, mean, squares);
    // Two sets become one (Chan, Golub, LeVeque 1979): nothing large is subtracted from something large.
    const auto more = static_cast<double>(pixels);
    const double share = more / (count + more);
    for (int c = 0; c < blockLength; ++c) {
      const double distance = mean[c] - result.mean[c];
      result.mean[c] += distance * share;
      result.variance[c] += squares[c] + distance * distance * count * share;
    }
    count += more;
  });
  for (double& variance : result.variance) variance /= count;
  return result;
}

/// The last step of both forward passes, for one block.
void normalizeBlock(const taccBatchNormDesc_t& d, const taccBatchNormBuffers_t& b, const LayerKernels& kernels,
                    int block, const OfBlock& mean, const OfBlock& deviation) {
  OfBlock factor(b.scale, d.channels, block);
  const OfBlock shift(b.shift, d.channels, block);
  for (int c = 0; c < blockLength; ++c) factor.values[c] *= deviation.values[c];
  for (int image = 0; image < d.batch; ++image) {
    const std::ptrdiff_t at = planeAt(d, image, block);
    kernels.normalize({b.input + at, b.residual != nullptr ? b.residual + at : nullptr, b.output + at, pixelsOf(d),
                       mean.values, factor.values, shift.values, d.relu != 0,
                       // In place it is in the caches already.
                       isTooLargeForCaches(bytesOf(d)) && b.output != b.input && b.output != b.residual});
  }
}

}  // namespace

void check(const taccBatchNormDesc_t& d) {
  if (d.size != sizeof(taccBatchNormDesc_t)) {
    fail(taccInvalidArgument, "the description's size is {} and not {}; start from TACC_BATCH_NORM_INITIALIZER", d.size,
         sizeof(taccBatchNormDesc_t));
  }
  for (const auto& [name, value] :
       {std::pair("batch", d.batch), {"channels", d.channels}, {"height", d.height}, {"width", d.width}}) {
    if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
  }
  if (!(d.epsilon > 0) || std::isinf(d.epsilon)) {
    fail(taccInvalidArgument, "epsilon is {}; it has to be positive, 1e-5 is usual", d.epsilon);
  }
  if (!(d.momentum >= 0 && d.momentum <= 1)) {
    fail(taccInvalidArgument, "momentum is {}; it has to be from 0 to 1", d.momentum);
  }
  if (conv::tensorFloats(taccLayoutNchw16c, d.batch, d.channels, d.height, d.width) == 0) {
    fail(taccInvalidArgument, "the input is larger than the address space");
  }
}

void batchNormTrain(const taccBatchNormDesc_t& d, const taccBatchNormBuffers_t& b, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor) {
  executor.forEach(static_cast<std::size_t>(blocksOf(d)), [&](std::size_t index, int) {
    const auto block = static_cast<int>(index);
    const Statistics statistics = statisticsOf(d, b.input, block, kernels);
    OfBlock mean, deviation;
    for (int c = 0; c < std::min(blockLength, d.channels - block * blockLength); ++c) {
      const int channel = block * blockLength + c;
      mean.values[c] = static_cast<float>(statistics.mean[c]);
      deviation.values[c] = static_cast<float>(1 / std::sqrt(statistics.variance[c] + d.epsilon));
      b.mean[channel] = mean.values[c];
      b.inverseDeviation[channel] = deviation.values[c];
      if (b.runningMean == nullptr) continue;
      const double ofPopulation = statistics.variance[c] * countOf(d) / std::max(1.0, countOf(d) - 1);
      b.runningMean[channel] += d.momentum * static_cast<float>(statistics.mean[c] - b.runningMean[channel]);
      b.runningVariance[channel] += d.momentum * static_cast<float>(ofPopulation - b.runningVariance[channel]);
    }
    normalizeBlock(d, b, kernels, block, mean, deviation);
  });
}

void batchNormInfer(const taccBatchNormDesc_t& d, const taccBatchNormBuffers_t& b, const LayerKernels& kernels,
                    const conv::TaskExecutor& executor) {
  executor.forEach(static_cast<std::size_t>(blocksOf(d)), [&](std::size_t index, int) {
    const auto block = static_cast<int>(index);
    const OfBlock mean(b.runningMean, d.channels, block);
    OfBlock deviation(b.runningVariance, d.channels, block);
    for (float& value : deviation.values) value = 1 / std::sqrt(value + d.epsilon);
    normalizeBlock(d, b, kernels, block, mean, deviation);
  });
}

void batchNormBackward(const taccBatchNormDesc_t& d, const taccBatchNormGradients_t& b, const LayerKernels& kernels,
                       const conv::TaskExecutor& executor) {
  executor.forEach(static_cast<std::size_t>(blocksOf(d)), [&](std::size_t index, int) {
    const auto block = static_cast<int>(index);
    const OfBlock mean(b.mean, d.channels, block);
    const OfBlock deviation(b.inverseDeviation, d.channels, block);
    OfBlock factor(b.scale, d.channels, block);
    double sums[blockLength] = {}, products[blockLength] = {};
    forEachChunk(d, block, [&](std::ptrdiff_t at, std::ptrdiff_t pixels) {
      float sum[blockLength], product[blockLength];
      kernels.gradientSums(b.input + at, b.outputGradient + at, pixels, mean.values, sum, product);
      for (int c = 0; c < blockLength; ++c) {
        sums[c] += sum[c];
        products[c] += product[c];
      }
    });
    OfBlock offset, slope;
    for (int c = 0; c < blockLength; ++c) {
      const double inverse = deviation.values[c];
      offset.values[c] = static_cast<float>(sums[c] / countOf(d));
      slope.values[c] = static_cast<float>(products[c] * inverse * inverse / countOf(d));
      factor.values[c] *= deviation.values[c];
    }
    for (int c = 0; c < std::min(blockLength, d.channels - block * blockLength); ++c) {
      b.shiftGradient[block * blockLength + c] = static_cast<float>(sums[c]);
      b.scaleGradient[block * blockLength + c] = static_cast<float>(products[c] * deviation.values[c]);
    }
    if (b.inputGradient == nullptr) return;
    for (int image = 0; image < d.batch; ++image) {
      const std::ptrdiff_t at = planeAt(d, image, block);
      kernels.normalizeGradient({b.input + at, b.outputGradient + at, b.inputGradient + at, pixelsOf(d), mean.values,
                                 factor.values, offset.values, slope.values,
                                 isTooLargeForCaches(bytesOf(d)) && b.inputGradient != b.outputGradient});
    }
  });
}

}  // namespace tacc::layers
