// A whole small network through the public interface: its gradients against differences of its loss, and that it
// learns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "../conv/conv_case.hpp"

namespace tacc {
namespace {

using conv::test::Floats;
using conv::test::smallInteger;

#define ASSERT_TACC(call) ASSERT_EQ(call, taccSuccess) << taccGetLastError(nullptr)
#define CHECK_TACC(call) EXPECT_EQ(call, taccSuccess) << taccGetLastError(nullptr)

/// Plan, packed weights and workspace of one pass.
class Pass {
 public:
  Pass(taccConvDesc_t desc, taccConvPass_t pass) {
    desc.pass = pass;
    if (pass != taccConvForward) desc.bias = desc.relu = 0;
    CHECK_TACC(taccConvPlanCreate(&plan_, &desc));
    CHECK_TACC(taccConvPlanGetInfo(plan_, &info));
    packed_ = Floats(info.packedWeightBytes / sizeof(float));
    workspace_ = Floats(info.workspaceBytes / sizeof(float));
  }
  ~Pass() { taccConvPlanDestroy(plan_); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void run(const float* weights, taccConvBuffers_t buffers) {
    if (weights != nullptr) {
      CHECK_TACC(taccConvPackWeights(plan_, weights, packed_.data()));
    }
    buffers.packedWeights = packed_.data();
    buffers.workspace = workspace_.data();
    buffers.workspaceBytes = info.workspaceBytes;
    CHECK_TACC(taccConvRun(plan_, &buffers, taccSerialExecutor()));
  }

  taccConvInfo_t info{};

 private:
  taccConvPlan_t plan_ = nullptr;
  Floats packed_{0}, workspace_{0};
};

void multiply(taccGemmDesc_t desc, const float* a, const float* b, const float* bias, float* c) {
  taccGemmPlan_t plan = nullptr;
  taccGemmInfo_t info{};
  CHECK_TACC(taccGemmPlanCreate(&plan, &desc));
  CHECK_TACC(taccGemmPlanGetInfo(plan, &info));
  Floats packed(info.packedBytes / sizeof(float));
  Floats workspace(info.workspaceBytes / sizeof(float));
  CHECK_TACC(taccGemmPack(plan, b, packed.data()));
  const taccGemmBuffers_t buffers{a, packed.data(), bias, c, workspace.data(), info.workspaceBytes};
  CHECK_TACC(taccGemmRun(plan, &buffers, taccSerialExecutor()));
  CHECK_TACC(taccGemmPlanDestroy(plan));
}

taccGemmDesc_t product(int m, int n, int k) {
  taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

/// Convolution with ReLU from one channel, pooling, convolution with ReLU, a fully connected layer and the loss.
class Network {
 public:
  static constexpr int batch = 6, size = 12, first = 5, second = 20, classes = 4;
  static constexpr int pooled = size / 2;
  static constexpr int flat = 32 * pooled * pooled;  // second, in whole blocks

  explicit Network(taccPoolKind_t kind) {
    pool_.kind = kind;
    pool_.batch = batch;
    pool_.channels = first;
    pool_.height = pool_.width = size;
    pool_.kernelHeight = pool_.kernelWidth = pool_.strideHeight = pool_.strideWidth = 2;
    for (int i = 0; i < batch; ++i) labels_[i] = i % classes;
    fill(image_, 1, 1.0F);
    fill(weights1, 2, 0.5F);
    fill(weights2, 3, 0.3F);
    fill(weights3, 4, 0.1F);
    fill(bias1, 5, 0.1F);
    fill(bias2, 6, 0.1F);
    fill(bias3, 7, 0.1F);
  }

  double loss() {
    forward1_.run(weights1.data(),
                  {image_.data(), nullptr, nullptr, bias1.data(), nullptr, hidden1_.data(), nullptr, 0});
    CHECK_TACC(taccPoolForward(&pool_, hidden1_.data(), pooled_.data(), taccSerialExecutor()));
    forward2_.run(weights2.data(),
                  {pooled_.data(), nullptr, nullptr, bias2.data(), nullptr, hidden2_.data(), nullptr, 0});
    taccGemmDesc_t desc = product(batch, classes, flat);
    desc.bias = 1;
    multiply(desc, hidden2_.data(), weights3.data(), bias3.data(), scores_.data());
    double result = 0;
    CHECK_TACC(taccSoftmaxLoss(scores_.data(), labels_, &result, scoreGradient_.data(), batch, classes));
    return result;
  }

  /// After loss().
  void backward() {
    taccGemmDesc_t toWeights = product(flat, classes, batch);
    toWeights.transposeA = 1;
    multiply(toWeights, hidden2_.data(), scoreGradient_.data(), nullptr, gradient3.data());
    taccGemmDesc_t toInput = product(batch, flat, classes);
    toInput.transposeB = 1;
    multiply(toInput, scoreGradient_.data(), weights3.data(), nullptr, hiddenGradient2_.data());
    CHECK_TACC(taccReluBackward(hidden2_.data(), hiddenGradient2_.data(), hiddenGradient2_.data(), hidden2_.size()));
    CHECK_TACC(taccBiasGradient(hiddenGradient2_.data(), biasGradient2.data(), batch, second, pooled, pooled, 0));
    toWeights2_.run(nullptr,
                    {pooled_.data(), nullptr, hiddenGradient2_.data(), nullptr, nullptr, gradient2.data(), nullptr, 0});
    toInput2_.run(weights2.data(),
                  {nullptr, nullptr, hiddenGradient2_.data(), nullptr, nullptr, pooledGradient_.data(), nullptr, 0});
    CHECK_TACC(taccPoolBackward(&pool_, hidden1_.data(), pooled_.data(), pooledGradient_.data(),
                                hiddenGradient1_.data(), taccSerialExecutor()));
    CHECK_TACC(taccReluBackward(hidden1_.data(), hiddenGradient1_.data(), hiddenGradient1_.data(), hidden1_.size()));
    CHECK_TACC(taccBiasGradient(hiddenGradient1_.data(), biasGradient1.data(), batch, first, size, size, 0));
    toWeights1_.run(nullptr,
                    {image_.data(), nullptr, hiddenGradient1_.data(), nullptr, nullptr, gradient1.data(), nullptr, 0});
  }

  Floats weights1{first * 9}, weights2{second * first * 9}, weights3{flat * classes};
  Floats bias1{first}, bias2{second}, bias3{classes};
  Floats gradient1{first * 9}, gradient2{second * first * 9}, gradient3{flat * classes};
  Floats biasGradient1{first}, biasGradient2{second};

 private:
  static void fill(Floats& floats, std::uint64_t seed, float scale) {
    for (std::size_t i = 0; i < floats.size(); ++i) floats.data()[i] = scale * smallInteger(seed, i, 99991) / 99991;
  }
  static taccConvDesc_t layer(int channels, int outChannels, int side, taccLayout_t layout) {
    taccConvDesc_t desc = conv::test::convolution(taccConvForward, batch, channels, side, side, outChannels, 3, 1, 1);
    desc.inputLayout = layout;
    desc.bias = desc.relu = 1;
    return desc;
  }
  static Floats blocked(int channels, int side) {
    return Floats(taccTensorBytes(taccLayoutNchw16c, batch, channels, side, side) / sizeof(float));
  }

  taccConvDesc_t layer1_ = layer(1, first, size, taccLayoutNchw);
  taccConvDesc_t layer2_ = layer(first, second, pooled, taccLayoutNchw16c);
  taccPoolDesc_t pool_ = TACC_POOL_INITIALIZER;
  Pass forward1_{layer1_, taccConvForward}, toWeights1_{layer1_, taccConvBackwardWeights};
  Pass forward2_{layer2_, taccConvForward}, toWeights2_{layer2_, taccConvBackwardWeights};
  Pass toInput2_{layer2_, taccConvBackwardData};
  int labels_[batch]{};
  Floats image_{batch * size * size}, scores_{batch * classes}, scoreGradient_{batch * classes};
  Floats hidden1_ = blocked(first, size), hiddenGradient1_ = blocked(first, size);
  Floats pooled_ = blocked(first, pooled), pooledGradient_ = blocked(first, pooled);
  Floats hidden2_ = blocked(second, pooled), hiddenGradient2_ = blocked(second, pooled);
};

class WholeNetwork : public testing::TestWithParam<taccPoolKind_t> {};

TEST_P(WholeNetwork, GradientsAreThoseOfItsLoss) {
  Network network(GetParam());
  const double loss = network.loss();
  network.backward();
  struct Parameters {
    const char* name;
    Floats& values;
    Floats gradient;
  };
  Parameters all[] = {{"weights1", network.weights1, network.gradient1},
                      {"bias1", network.bias1, network.biasGradient1},
                      {"weights2", network.weights2, network.gradient2},
                      {"bias2", network.bias2, network.biasGradient2},
                      {"weights3", network.weights3, network.gradient3}};
  constexpr float step = 3e-4F;
  for (Parameters& parameters : all) {
    double largest = 0;
    for (std::size_t i = 0; i < parameters.gradient.size(); ++i) {
      largest = std::max(largest, std::abs(double(parameters.gradient.data()[i])));
    }
    ASSERT_GT(largest, 0) << parameters.name;
    const std::size_t stride = std::max<std::size_t>(1, parameters.values.size() / 20);
    for (std::size_t i = 0; i < parameters.values.size(); i += stride) {
      float& value = parameters.values.data()[i];
      const float kept = value;
      value = kept + step;
      const double above = network.loss();
      value = kept - step;
      const double below = network.loss();
      value = kept;
      // ReLU and the largest value have kinks: then the gradient is that of one side, and the other side is off.
      const double left = (loss - below) / step;
      const double right = (above - loss) / step;
      const double gradient = parameters.gradient.data()[i];
      EXPECT_GE(gradient, std::min(left, right) - 0.03 * largest) << parameters.name << " " << i;
      EXPECT_LE(gradient, std::max(left, right) + 0.03 * largest) << parameters.name << " " << i;
    }
  }
}

TEST_P(WholeNetwork, Learns) {
  Network network(GetParam());
  const double before = network.loss();
  Floats velocity1(network.weights1.size()), velocity2(network.weights2.size()), velocity3(network.weights3.size());
  for (int i = 0; i < 150; ++i) {
    network.backward();
    ASSERT_TACC(taccSgdMomentum(network.weights1.data(), velocity1.data(), network.gradient1.data(), velocity1.size(),
                                0.05F, 0.9F, 0));
    ASSERT_TACC(taccSgdMomentum(network.weights2.data(), velocity2.data(), network.gradient2.data(), velocity2.size(),
                                0.05F, 0.9F, 0));
    ASSERT_TACC(taccSgdMomentum(network.weights3.data(), velocity3.data(), network.gradient3.data(), velocity3.size(),
                                0.05F, 0.9F, 0));
    network.loss();
  }
  EXPECT_LT(network.loss(), 0.1 * before);
}

INSTANTIATE_TEST_SUITE_P(Pooling, WholeNetwork, testing::Values(taccPoolMax, taccPoolAverage));

TEST(Pool, MatchesTheDefinition) {
  taccPoolDesc_t desc = TACC_POOL_INITIALIZER;
  desc.batch = 2;
  desc.channels = 20;
  desc.height = 7;
  desc.width = 9;
  desc.kernelHeight = desc.kernelWidth = 3;
  desc.strideHeight = desc.strideWidth = 2;
  desc.padHeight = desc.padWidth = 1;
  const int outHeight = 4;
  const int outWidth = 5;
  Floats input(taccTensorBytes(taccLayoutNchw16c, 2, 20, 7, 9) / sizeof(float));
  Floats output(taccTensorBytes(taccLayoutNchw16c, 2, 20, outHeight, outWidth) / sizeof(float));
  for (std::size_t i = 0; i < input.size(); ++i) input.data()[i] = smallInteger(1, i, 1000);
  for (const taccPoolKind_t kind : {taccPoolMax, taccPoolAverage}) {
    desc.kind = kind;
    ASSERT_TACC(taccPoolForward(&desc, input.data(), output.data(), taccSerialExecutor()));
    for (int n = 0; n < 2; ++n) {
      for (int c = 0; c < 20; ++c) {
        for (int y = 0; y < outHeight; ++y) {
          for (int x = 0; x < outWidth; ++x) {
            double largest = -1e9;
            double sum = 0;
            int count = 0;
            for (int line = std::max(0, 2 * y - 1); line < std::min(7, 2 * y + 2); ++line) {
              for (int column = std::max(0, 2 * x - 1); column < std::min(9, 2 * x + 2); ++column) {
                const double value = input[conv::elementAt(taccLayoutNchw16c, 20, 7, 9, n, c, line, column)];
                largest = std::max(largest, value);
                sum += value;
                ++count;
              }
            }
            const float result = output[conv::elementAt(taccLayoutNchw16c, 20, outHeight, outWidth, n, c, y, x)];
            EXPECT_NEAR(result, kind == taccPoolMax ? largest : sum / count, 1e-3);
          }
        }
      }
    }
  }
}

TEST(Pool, SaysWhatIsWrong) {
  taccPoolDesc_t desc = TACC_POOL_INITIALIZER;
  desc.channels = desc.height = desc.width = 4;
  desc.kernelHeight = desc.kernelWidth = 2;
  desc.padWidth = 2;
  float some[64] = {};
  EXPECT_EQ(taccPoolForward(&desc, some, some, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("padWidth is 2; it has to be 0 or more, and less than"));
  desc.padWidth = 0;
  desc.kernelHeight = 9;
  EXPECT_EQ(taccPoolForward(&desc, some, some, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("larger than the height"));
}

TEST(SoftmaxLoss, RefusesUnknownLabels) {
  const float scores[] = {1, 2, 3};
  const int label = 3;
  double loss = 0;
  EXPECT_EQ(taccSoftmaxLoss(scores, &label, &loss, nullptr, 1, 3), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("label 0 is 3; there are classes 0 to 2"));
}

}  // namespace
}  // namespace tacc
