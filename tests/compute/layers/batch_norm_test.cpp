// Batch normalisation against its definition in float64, and its gradients against differences of that.
#include "compute/layers/layers.hpp"
#include "layer_case.hpp"

namespace tacc::layers::test {
namespace {

using conv::TaskExecutor;

taccBatchNormDesc_t describe(const Sizes& s) {
  taccBatchNormDesc_t desc = TACC_BATCH_NORM_INITIALIZER;
  desc.batch = s.batch;
  desc.channels = s.channels;
  desc.height = s.height;
  desc.width = s.width;
  return desc;
}

/// Everything that a layer has.
struct Layer {
  explicit Layer(const Sizes& theSizes, float middle = 0) : sizes(theSizes), desc(describe(theSizes)) {
    input = someTensor(sizes, 1, middle);
    residual = someTensor(sizes, 2);
    outputGradient = someTensor(sizes, 3);
    for (int c = 0; c < sizes.channels; ++c) {
      scale[c] = 0.5F + fraction(4, static_cast<std::uint64_t>(c));
      shift[c] = fraction(5, static_cast<std::uint64_t>(c));
      runningMean[c] = fraction(6, static_cast<std::uint64_t>(c));
      runningVariance[c] = 1.5F + fraction(7, static_cast<std::uint64_t>(c));
    }
    std::fill_n(output.data(), output.size(), 1e30F);
    std::fill_n(inputGradient.data(), inputGradient.size(), 1e30F);
  }
  taccBatchNormBuffers_t buffers() {
    return {input.data(),     scale.data(),       shift.data(),          nullptr, output.data(), mean.data(),
            deviation.data(), runningMean.data(), runningVariance.data()};
  }
  taccBatchNormGradients_t gradients() {
    return {input.data(),     outputGradient.data(), scale.data(),         mean.data(),
            deviation.data(), inputGradient.data(),  scaleGradient.data(), shiftGradient.data()};
  }

  Sizes sizes;
  taccBatchNormDesc_t desc;
  Floats input{0}, residual{0}, outputGradient{0};
  Floats output{sizes.floats()}, inputGradient{sizes.floats()};
  Floats scale = perChannel(), shift = perChannel(), mean = perChannel(), deviation = perChannel();
  Floats runningMean = perChannel(), runningVariance = perChannel();
  Floats scaleGradient = perChannel(), shiftGradient = perChannel();

 private:
  Floats perChannel() const { return Floats(static_cast<std::size_t>(sizes.channels)); }
};

/// One channel by the definition, in float64.
struct Channel {
  Channel(const Layer& l, int c) : scale(l.scale[c]), shift(l.shift[c]), epsilon(l.desc.epsilon) {
    for (int n = 0; n < l.sizes.batch; ++n) {
      for (int p = 0; p < l.sizes.pixels(); ++p) {
        x.push_back(l.input[l.sizes.at(n, c, p)]);
        gradient.push_back(l.outputGradient[l.sizes.at(n, c, p)]);
      }
    }
  }
  double mean() const {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  }
  double variance() const {
    double sum = 0;
    for (const double value : x) sum += (value - mean()) * (value - mean());
    return sum / static_cast<double>(x.size());
  }
  std::vector<double> output() const {
    std::vector<double> y;
    const double middle = mean();
    const double inverse = 1 / std::sqrt(variance() + epsilon);
    for (const double value : x) y.push_back((value - middle) * inverse * scale + shift);
    return y;
  }
  /// Of which the output's gradient is the gradient.
  double loss() const {
    double sum = 0;
    const std::vector<double> y = output();
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * gradient[i];
    return sum;
  }
  /// The loss's change with `value`, a member.
  double slopeOf(double& value) const {
    const double kept = value;
    constexpr double step = 1e-5;
    value = kept + step;
    const double above = loss();
    value = kept - step;
    const double below = loss();
    value = kept;
    return (above - below) / (2 * step);
  }
  std::vector<double> x, gradient;
  double scale, shift, epsilon;
};

TEST(BatchNorm, TrainsByTheDefinition) {
  for (const LayerKernels* kernels : availableTables()) {
    for (const float middle : {0.0F, 1000.0F}) {
      Layer layer({3, 20, 13, 17}, middle);
      const Layer before = layer;
      batchNormTrain(layer.desc, layer.buffers(), *kernels, TaskExecutor(*taccSerialExecutor()));
      for (int c = 0; c < 20; ++c) {
        const Channel channel(layer, c);
        const double mean = channel.mean();
        const double variance = channel.variance();
        const double count = 3 * 13 * 17;
        EXPECT_NEAR(layer.mean[c], mean, 1e-7 * std::abs(middle) + 1e-6);
        // A mean that is off by a rounding of it makes the variance larger by its square.
        EXPECT_NEAR(layer.deviation[c] * std::sqrt(variance + 1e-5), 1, 1e-5) << kernels->isa << " " << middle;
        EXPECT_NEAR(layer.runningMean[c], 0.9 * before.runningMean[c] + 0.1 * mean, 1e-6 * (1 + middle));
        EXPECT_NEAR(layer.runningVariance[c], 0.9 * before.runningVariance[c] + 0.1 * variance * count / (count - 1),
                    1e-5);
        const std::vector<double> y = channel.output();
        for (int i = 0; i < 3 * 13 * 17; ++i) {
          EXPECT_NEAR(layer.output[layer.sizes.at(i / (13 * 17), c, i % (13 * 17))], y[static_cast<std::size_t>(i)],
                      5e-6 + 3e-7 * middle);
        }
      }
      expectZeroPadding(layer.sizes, layer.output);
    }
  }
}

TEST(BatchNorm, GradientsAreThoseOfTheDefinition) {
  for (const LayerKernels* kernels : availableTables()) {
    Layer layer({2, 18, 5, 7}, 3.0F);
    batchNormTrain(layer.desc, layer.buffers(), *kernels, TaskExecutor(*taccSerialExecutor()));
    batchNormBackward(layer.desc, layer.gradients(), *kernels, TaskExecutor(*taccSerialExecutor()));
    for (int c = 0; c < 18; ++c) {
      Channel channel(layer, c);
      EXPECT_NEAR(layer.scaleGradient[c], channel.slopeOf(channel.scale), 2e-4);
      EXPECT_NEAR(layer.shiftGradient[c], channel.slopeOf(channel.shift), 2e-4);
      for (int i = 0; i < 70; i += 3) {
        EXPECT_NEAR(layer.inputGradient[layer.sizes.at(i / 35, c, i % 35)],
                    channel.slopeOf(channel.x[static_cast<std::size_t>(i)]), 2e-5)
            << kernels->isa;
      }
    }
    expectZeroPadding(layer.sizes, layer.inputGradient);
    const Floats apart = layer.inputGradient;
    taccBatchNormGradients_t inPlace = layer.gradients();
    inPlace.inputGradient = layer.outputGradient.data();
    batchNormBackward(layer.desc, inPlace, *kernels, TaskExecutor(*taccSerialExecutor()));
    EXPECT_TRUE(layer.outputGradient == apart);
  }
}

TEST(BatchNorm, InfersWithTheRunningStatistics) {
  for (const LayerKernels* kernels : availableTables()) {
    Layer layer({2, 37, 4, 6});
    layer.desc.relu = 1;
    taccBatchNormBuffers_t buffers = layer.buffers();
    buffers.residual = layer.residual.data();
    batchNormInfer(layer.desc, buffers, *kernels, TaskExecutor(*taccSerialExecutor()));
    for (int c = 0; c < 37; ++c) {
      const double inverse = 1 / std::sqrt(layer.runningVariance[c] + 1e-5);
      for (int i = 0; i < 48; ++i) {
        const std::ptrdiff_t at = layer.sizes.at(i / 24, c, i % 24);
        const double y = (layer.input[at] - double(layer.runningMean[c])) * inverse * layer.scale[c] + layer.shift[c] +
                         layer.residual[at];
        EXPECT_NEAR(layer.output[at], std::max(y, 0.0), 1e-5);
      }
    }
    expectZeroPadding(layer.sizes, layer.output);
    const Floats apart = layer.output;
    buffers.output = layer.input.data();
    batchNormInfer(layer.desc, buffers, *kernels, TaskExecutor(*taccSerialExecutor()));
    EXPECT_TRUE(layer.input == apart);
  }
}

TEST(BatchNorm, ThreadsChangeNoBit) {
  Layer serial({3, 100, 9, 11});
  ASSERT_EQ(taccBatchNormTrain(&serial.desc, nullptr, taccSerialExecutor()), taccInvalidArgument);
  const taccBatchNormBuffers_t buffers = serial.buffers();
  ASSERT_EQ(taccBatchNormTrain(&serial.desc, &buffers, taccSerialExecutor()), taccSuccess);
  const taccBatchNormGradients_t gradients = serial.gradients();
  ASSERT_EQ(taccBatchNormBackward(&serial.desc, &gradients, taccSerialExecutor()), taccSuccess);
  for (int workers = 2; workers <= 5; ++workers) {
    const ThreadedExecutor threads(workers);
    Layer other({3, 100, 9, 11});
    const taccBatchNormBuffers_t otherBuffers = other.buffers();
    ASSERT_EQ(taccBatchNormTrain(&other.desc, &otherBuffers, &threads.get()), taccSuccess);
    const taccBatchNormGradients_t otherGradients = other.gradients();
    ASSERT_EQ(taccBatchNormBackward(&other.desc, &otherGradients, &threads.get()), taccSuccess);
    EXPECT_TRUE(other.output == serial.output);
    EXPECT_TRUE(other.runningVariance == serial.runningVariance);
    EXPECT_TRUE(other.inputGradient == serial.inputGradient);
    EXPECT_TRUE(other.scaleGradient == serial.scaleGradient);
  }
}

TEST(BatchNorm, SaysWhatIsWrong) {
  Layer layer({1, 4, 2, 2});
  const auto refusal = [&](auto member, auto value) -> std::string {
    taccBatchNormDesc_t desc = layer.desc;
    desc.*member = value;
    const taccBatchNormBuffers_t buffers = layer.buffers();
    EXPECT_EQ(taccBatchNormTrain(&desc, &buffers, taccSerialExecutor()), taccInvalidArgument);
    return taccGetLastError(nullptr);
  };
  EXPECT_THAT(refusal(&taccBatchNormDesc_t::size, std::size_t{8}), testing::HasSubstr("TACC_BATCH_NORM_INITIALIZER"));
  EXPECT_THAT(refusal(&taccBatchNormDesc_t::channels, 0), testing::HasSubstr("channels is 0"));
  EXPECT_THAT(refusal(&taccBatchNormDesc_t::epsilon, 0.0F), testing::HasSubstr("epsilon is 0; it has to be positive"));
  EXPECT_THAT(refusal(&taccBatchNormDesc_t::momentum, 1.5F), testing::HasSubstr("momentum is 1.5"));
  taccBatchNormBuffers_t buffers = layer.buffers();
  buffers.runningVariance = nullptr;
  EXPECT_EQ(taccBatchNormTrain(&layer.desc, &buffers, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("give both or none"));
  EXPECT_EQ(taccBatchNormInfer(&layer.desc, &buffers, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("runningVariance is NULL"));
}

}  // namespace
}  // namespace tacc::layers::test
