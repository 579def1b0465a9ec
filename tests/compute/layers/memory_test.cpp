// Layers that do little more than read and write: pooling, ReLU's and the bias's gradient, the optimizer's step. Every
// instruction set against plain loops, and nothing outside the buffers is touched.
#include <cmath>
#include <limits>

#include "../guarded_buffer.hpp"
#include "compute/layers/layers.hpp"
#include "layer_case.hpp"

namespace tacc::layers::test {
namespace {

const conv::TaskExecutor serial(*taccSerialExecutor());

Floats integers(std::size_t count, std::uint64_t seed) {
  Floats numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers.data()[i] = conv::test::smallInteger(seed, i, 9);
  return numbers;
}

struct Pooled {
  Floats output, inputGradient;
};

/// By the definition, of integers in `input` and `gradient`; averages are of windows with 1, 2, 4 ... pixels exact.
Pooled expectedPooling(const Pooling& p, const Floats& input, const Floats& gradient) {
  const taccPoolDesc_t& d = p.desc;
  Pooled result{Floats(gradient.size()), Floats(input.size())};
  for (int block = 0; block < p.blocks; ++block) {
    for (int y = 0; y < p.outHeight; ++y) {
      for (int x = 0; x < p.outWidth; ++x) {
        for (int c = 0; c < conv::blockLength; ++c) {
          const auto at = static_cast<std::size_t>(((block * p.outHeight + y) * p.outWidth + x) * 16 + c);
          float sum = 0, largest = -std::numeric_limits<float>::infinity();
          std::vector<std::size_t> window;
          for (int r = 0; r < d.kernelHeight; ++r) {
            for (int s = 0; s < d.kernelWidth; ++s) {
              const int line = y * d.strideHeight - d.padHeight + r;
              const int column = x * d.strideWidth - d.padWidth + s;
              if (line < 0 || line >= d.height || column < 0 || column >= d.width) continue;
              window.push_back(static_cast<std::size_t>(((block * d.height + line) * d.width + column) * 16 + c));
              sum += input[window.back()];
              largest = std::max(largest, input[window.back()]);
            }
          }
          const float share = 1.0F / static_cast<float>(window.size());
          result.output[at] = d.kind == taccPoolMax ? largest : sum * share;
          for (const std::size_t pixel : window) {
            if (d.kind == taccPoolAverage) result.inputGradient[pixel] += gradient[at] * share;
            if (d.kind == taccPoolMax && input[pixel] == largest) {
              result.inputGradient[pixel] += gradient[at];
              break;
            }
          }
        }
      }
    }
  }
  return result;
}

TEST(Pooling, IsTheDefinition) {
  for (const taccPoolKind_t kind : {taccPoolMax, taccPoolAverage}) {
    for (const auto& [size, width, kernel, stride, pad] : {std::array{9, 12, 3, 2, 1},
                                                           {8, 11, 2, 2, 0},
                                                           {8, 12, 2, 2, 0},  // every pixel in one window
                                                           {6, 9, 3, 3, 0},
                                                           {7, 10, 7, 7, 0},
                                                           {7, 7, 7, 7, 0},  // one window
                                                           {18, 18, 18, 18, 0},
                                                           {11, 14, 3, 1, 1},
                                                           {11, 14, 3, 1, 2},
                                                           {11, 14, 3, 1, 0},
                                                           {3, 2, 3, 1, 1},
                                                           {9, 13, 3, 2, 0},  // windows that end with the image
                                                           {10, 14, 3, 2, 0},
                                                           {10, 13, 3, 2, 1},
                                                           {8, 11, 3, 2, 2},
                                                           {2, 1, 3, 2, 1},
                                                           {10, 13, 5, 3, 2},
                                                           {5, 8, 1, 3, 0}}) {
      taccPoolDesc_t desc = TACC_POOL_INITIALIZER;
      desc.kind = kind;
      desc.batch = 2;
      desc.channels = 20;
      desc.height = size;
      desc.width = width;
      desc.kernelHeight = desc.kernelWidth = kernel;
      desc.strideHeight = desc.strideWidth = stride;
      desc.padHeight = desc.padWidth = pad;
      const Pooling p = understand(desc);
      const auto inFloats = static_cast<std::size_t>(p.blocks * size * width * 16);
      const auto outFloats = static_cast<std::size_t>(p.blocks * p.outHeight * p.outWidth * 16);
      const Floats input = integers(inFloats, 1), gradient = integers(outFloats, 2);
      const Pooled expected = expectedPooling(p, input, gradient);
      for (const LayerKernels* kernels : availableTables()) {
        tacc::test::GuardedBuffer output(outFloats * sizeof(float), 0), inputGradient(inFloats * sizeof(float), 0);
        poolForward(p, input.data(), output.as<float>(), *kernels, serial);
        poolBackward(p, input.data(), output.as<float>(), gradient.data(), inputGradient.as<float>(), *kernels, serial);
        EXPECT_TRUE(output.isIntact() && inputGradient.isIntact());
        for (std::size_t i = 0; i < outFloats; ++i) {
          ASSERT_EQ(output.as<float>()[i], expected.output.data()[i]) << kernels->isa << " " << size << " " << kernel;
        }
        for (std::size_t i = 0; i < inFloats; ++i) {
          // Multiply-adds round once.
          ASSERT_NEAR(inputGradient.as<float>()[i], expected.inputGradient.data()[i], 1e-5) << kernels->isa;
        }
      }
    }
  }
}

TEST(Pooling, OfImagesLargerThanTheCaches) {
  // Several blocks are pooled together then, and the last ones are fewer.
  for (const taccPoolKind_t kind : {taccPoolMax, taccPoolAverage}) {
    for (const auto& [kernel, stride, pad] : {std::array{2, 2, 0}, {3, 2, 1}, {3, 1, 1}}) {
      taccPoolDesc_t desc = TACC_POOL_INITIALIZER;
      desc.kind = kind;
      desc.batch = 5;
      desc.channels = 16;
      desc.height = desc.width = 170;
      desc.kernelHeight = desc.kernelWidth = kernel;
      desc.strideHeight = desc.strideWidth = stride;
      desc.padHeight = desc.padWidth = pad;
      const Pooling p = understand(desc);
      const std::size_t inFloats = 5UL * 170 * 170 * 16;
      const auto outFloats = static_cast<std::size_t>(p.blocks * p.outHeight * p.outWidth * 16);
      ASSERT_TRUE(isTooLargeForCaches(inFloats * sizeof(float)));
      const Floats input = integers(inFloats, 1), gradient = integers(outFloats, 2);
      const Pooled expected = expectedPooling(p, input, gradient);
      for (const LayerKernels* kernels : availableTables()) {
        Floats output(outFloats), inputGradient(inFloats);
        poolForward(p, input.data(), output.data(), *kernels, serial);
        poolBackward(p, input.data(), output.data(), gradient.data(), inputGradient.data(), *kernels, serial);
        EXPECT_TRUE(output == expected.output) << kernels->isa << " " << kernel << " " << stride;
        float furthest = 0;
        for (std::size_t i = 0; i < inFloats; ++i) {
          furthest = std::max(furthest, std::abs(inputGradient.data()[i] - expected.inputGradient.data()[i]));
        }
        EXPECT_LE(furthest, kind == taccPoolMax || kernel == 2 ? 0 : 1e-5) << kernels->isa << " " << kernel;
      }
    }
  }
}

TEST(ReluBackward, ForEveryLengthAndPlace) {
  const Floats output = integers(300, 3), gradient = integers(300, 4);
  for (const LayerKernels* kernels : availableTables()) {
    for (std::size_t count = 0; count < 100; ++count) {
      for (const std::size_t offset : {0, 4}) {
        for (const bool isNonTemporal : {false, true}) {
          tacc::test::GuardedBuffer result(count * sizeof(float), offset);
          kernels->reluBackward(output.data() + 1, gradient.data(), result.as<float>(), count, isNonTemporal);
          EXPECT_TRUE(result.isIntact());
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(result.as<float>()[i], output.data()[i + 1] > 0 ? gradient.data()[i] : 0.0F) << kernels->isa;
          }
        }
      }
    }
  }
}

TEST(BiasGradient, IsTheSumOverImagesAndPixels) {
  for (const Sizes& sizes : {Sizes{3, 20, 9, 15}, {1, 17, 31, 29}, {2, 16, 2, 3}}) {
    const Floats gradient = someTensor(sizes, 5);
    for (const LayerKernels* kernels : availableTables()) {
      std::vector<float> bias(static_cast<std::size_t>(sizes.channels), 1.0F);
      for (const bool accumulate : {false, true}) {
        biasGradient(gradient.data(), bias.data(), sizes.batch, sizes.channels, sizes.pixels(), accumulate, *kernels);
        for (int c = 0; c < sizes.channels; ++c) {
          double sum = 0;
          for (int n = 0; n < sizes.batch; ++n) {
            for (int p = 0; p < sizes.pixels(); ++p) sum += gradient.data()[sizes.at(n, c, p)];
          }
          EXPECT_NEAR(bias[static_cast<std::size_t>(c)], accumulate ? 2 * sum : sum, 1e-4) << kernels->isa;
        }
      }
    }
  }
}

TEST(SgdMomentum, IsItsFormula) {
  for (const LayerKernels* kernels : availableTables()) {
    for (const std::size_t count : {1, 15, 16, 33, 100}) {
      Floats weights = integers(count, 6), velocity = integers(count, 7);
      const Floats oldWeights = integers(count, 6), oldVelocity = integers(count, 7), gradient = integers(count, 8);
      kernels->sgdMomentum(weights.data(), velocity.data(), gradient.data(), count, 0.1F, 0.9F, 0.01F);
      for (std::size_t i = 0; i < count; ++i) {
        const double speed = 0.9 * oldVelocity.data()[i] + 0.1 * (gradient.data()[i] + 0.01 * oldWeights.data()[i]);
        EXPECT_NEAR(velocity.data()[i], speed, 1e-5) << kernels->isa;
        EXPECT_NEAR(weights.data()[i], oldWeights.data()[i] - speed, 1e-5) << kernels->isa;
      }
    }
  }
}

TEST(Streams, ChangeNoBit) {
  const Sizes sizes{1, 16, 9, 13};
  const Floats input = someTensor(sizes, 9);
  const std::vector<float> ones(16, 1.5F);
  for (const LayerKernels* kernels : availableTables()) {
    Floats cached(input.size()), streamed(input.size());
    for (const bool isNonTemporal : {false, true}) {
      Floats& output = isNonTemporal ? streamed : cached;
      kernels->normalize({input.data(), nullptr, output.data(), sizes.pixels(), ones.data(), ones.data(), ones.data(),
                          true, isNonTemporal});
    }
    EXPECT_TRUE(cached == streamed) << kernels->isa;
    for (const bool isNonTemporal : {false, true}) {
      Floats& output = isNonTemporal ? streamed : cached;
      kernels->dropout({input.data(), output.data(), input.size(), 3, 4, 5, 1U << 30, 2.0F, isNonTemporal});
    }
    EXPECT_TRUE(cached == streamed) << kernels->isa;
  }
}

TEST(Streams, ChangeNoBitOfPooling) {
  const Sizes sizes{1, 16, 2, 12};
  const Floats input = someTensor(sizes, 10), gradient = someTensor(sizes, 11);
  PoolLine line{};
  line.inputLine = std::ptrdiff_t{sizes.width} * conv::blockLength;
  line.lines = line.kernel = line.stride = 2;
  line.width = sizes.width;
  line.outputs = sizes.width / 2;
  line.planes = 1;
  line.isTiling = line.isLast = true;
  for (const LayerKernels* kernels : availableTables()) {
    std::vector<Floats> results[2];
    for (const bool isNonTemporal : {false, true}) {
      line.isNonTemporal = isNonTemporal;
      Floats largest(input.size()), average(input.size()), ofLargest(input.size()), ofAverage(input.size());
      kernels->poolMax(line, input.data(), largest.data());
      kernels->poolAverage(line, input.data(), average.data());
      kernels->poolMaxGradient(line, input.data(), largest.data(), gradient.data(), ofLargest.data());
      kernels->poolAverageGradient(line, gradient.data(), ofAverage.data());
      for (Floats* result : {&largest, &average, &ofLargest, &ofAverage}) results[isNonTemporal].push_back(*result);
    }
    EXPECT_TRUE(results[0] == results[1]) << kernels->isa;
  }
}

}  // namespace
}  // namespace tacc::layers::test
