// tacc/compute.h as a program uses it, and what it says when it is used wrongly.
#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>

#include "conv_case.hpp"

extern "C" int computeHeaderIsC();

namespace tacc::conv::test {
namespace {

using ::testing::HasSubstr;

taccConvDesc_t ordinary() { return convolution(taccConvForward, 1, 20, 8, 9, 30, 3, 1, 1); }

/// The message of a plan that must not come into being.
std::string refusal(const taccConvDesc_t& desc) {
  taccConvPlan_t plan = nullptr;
  EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccInvalidArgument);
  EXPECT_EQ(plan, nullptr);
  return taccGetLastError(nullptr);
}

class PlanFromC {
 public:
  explicit PlanFromC(const taccConvDesc_t& desc) {
    EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  }
  ~PlanFromC() { EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess); }
  PlanFromC(const PlanFromC&) = delete;
  PlanFromC& operator=(const PlanFromC&) = delete;

  taccConvPlan_t plan = nullptr;
  taccConvInfo_t info{};
};

TEST(Interface, FromDescriptionToResult) {
  taccConvDesc_t desc = ordinary();
  desc.bias = desc.relu = 1;
  const Case test(desc);
  const PlanFromC c(desc);
  EXPECT_EQ(c.info.outHeight, 8);
  EXPECT_EQ(c.info.outWidth, 9);
  EXPECT_EQ(c.info.inputBytes, test.input.size() * sizeof(float));
  EXPECT_EQ(c.info.weightBytes, test.weights.size() * sizeof(float));
  EXPECT_EQ(c.info.operations, 2.0 * 20 * 30 * 9 * 8 * 9);
  EXPECT_STREQ(c.info.algorithm, "direct");
  // "direct" multiplies with vectors, beside AMX too.
  const std::string_view isa = taccComputeIsa();
  EXPECT_THAT(c.info.kernel, HasSubstr(isa == "amx" ? "avx512" : isa));
  EXPECT_GT(c.info.predictedSeconds, 0);
  Floats packed(c.info.packedWeightBytes / sizeof(float));
  Floats workspace(c.info.workspaceBytes / sizeof(float));
  Floats result(c.info.outputBytes / sizeof(float));
  ASSERT_EQ(taccConvPackWeights(c.plan, test.weights.data(), packed.data()), taccSuccess);
  const taccConvBuffers_t buffers{test.input.data(), packed.data(), nullptr,          test.bias.data(),
                                  nullptr,           result.data(), workspace.data(), c.info.workspaceBytes};
  ASSERT_EQ(taccConvRun(c.plan, &buffers, taccSerialExecutor()), taccSuccess) << taccGetLastError(nullptr);
  EXPECT_TRUE(result == test.expected());
}

TEST(Interface, ForcedAlgorithms) {
  taccConvDesc_t desc = ordinary();
  desc.algorithm = "reference";
  EXPECT_STREQ(PlanFromC(desc).info.algorithm, "reference");
  desc.algorithm = "fastest";
  EXPECT_THAT(refusal(desc), HasSubstr(taccConvAlgorithms()));
  desc.algorithm = "depthwise";
  EXPECT_THAT(refusal(desc), testing::AllOf(HasSubstr("; direct, "), HasSubstr("reference would")));
  desc.algorithm = "plain-product";  // not of any layout for a kernel like this, but for a product
  EXPECT_THAT(refusal(desc), HasSubstr("reference would"));
  desc.kernelHeight = desc.kernelWidth = 1;
  desc.padHeight = desc.padWidth = 0;
  EXPECT_THAT(refusal(desc),
              testing::AllOf(HasSubstr(", other than from NCHW to NCHW; direct, "), HasSubstr("reference would")));
  desc.inputLayout = desc.outputLayout = taccLayoutNchw;
  EXPECT_STREQ(PlanFromC(desc).info.algorithm, "plain-product");
}

TEST(Interface, RefusesImpossibleShapes) {
  const auto with = [](auto member, int value) {
    taccConvDesc_t desc = ordinary();
    desc.*member = value;
    return refusal(desc);
  };
  EXPECT_THAT(with(&taccConvDesc_t::batch, 0), HasSubstr("batch is 0"));
  EXPECT_THAT(with(&taccConvDesc_t::height, -3), HasSubstr("height is -3"));
  EXPECT_THAT(with(&taccConvDesc_t::padWidth, -1), HasSubstr("padWidth is -1"));
  EXPECT_THAT(with(&taccConvDesc_t::strideHeight, 0), HasSubstr("strideHeight is 0"));
  EXPECT_THAT(with(&taccConvDesc_t::kernelHeight, 11), HasSubstr("reaches over 11 of the height, which is only 10"));
  EXPECT_THAT(with(&taccConvDesc_t::groups, 7), HasSubstr("7 groups do not divide"));
  EXPECT_THAT(with(&taccConvDesc_t::maxWorkers, 0), HasSubstr("maxWorkers is 0"));
  EXPECT_THAT(with(&taccConvDesc_t::accumulate, 1), HasSubstr("backward"));
}

TEST(Interface, RefusesWhatDoesNotFitIntoTheAddressSpace) {
  taccConvDesc_t desc = ordinary();
  desc.batch = desc.inChannels = desc.height = desc.width = 1 << 20;
  EXPECT_THAT(refusal(desc), HasSubstr("larger than the address space"));
  EXPECT_EQ(taccTensorBytes(taccLayoutNchw, 1 << 20, 1 << 20, 1 << 20, 1 << 20), 0U);
  EXPECT_EQ(taccWeightBytes(taccWeightsBlocked, 10, 10, 3, 3, 3), 0U);
  EXPECT_EQ(taccWeightBytes(taccWeightsBlocked, 20, 20, 3, 3, 20), 32U * 9 * sizeof(float));  // groups share blocks
}

TEST(Interface, RefusesAnotherHeader) {
  taccConvDesc_t desc = ordinary();
  desc.size = 8;
  EXPECT_THAT(refusal(desc), HasSubstr("TACC_CONV_INITIALIZER"));
}

TEST(Interface, TakesTheDescriptionOfAnOlderHeader) {
  // It ends where `activation` begins, and leaves what is `reserved` now to chance.
  taccConvDesc_t desc = ordinary();
  desc.size = offsetof(taccConvDesc_t, activation);
  desc.relu = 1;
  std::memset(&desc.reserved, 0xA5, sizeof desc - offsetof(taccConvDesc_t, reserved));
  EXPECT_EQ(understand(desc).activation, taccActivationRelu);
  EXPECT_EQ(PlanFromC(desc).info.outHeight, 8);
  for (desc.size = 0; desc.size < 2 * sizeof desc; ++desc.size) {
    const std::size_t known[] = {sizeof desc, offsetof(taccConvDesc_t, activation),
                                 offsetof(taccConvDesc_t, roundWeights)};
    if (std::ranges::find(known, desc.size) != std::end(known)) continue;
    EXPECT_THAT(refusal(desc), HasSubstr("TACC_CONV_INITIALIZER")) << desc.size;
  }
}

TEST(Interface, RefusesUnknownActivations) {
  taccConvDesc_t desc = ordinary();
  for (const int unknown : {5, -1, 1 << 30}) {
    desc.activation = static_cast<taccActivation_t>(unknown);
    EXPECT_THAT(refusal(desc), testing::AllOf(HasSubstr("is unknown"), HasSubstr("taccActivationHardSwish")));
  }
  desc.activation = taccActivationSilu;
  desc.relu = 1;
  EXPECT_THAT(refusal(desc), HasSubstr("set one of the two"));
  desc.activation = taccActivationRelu;  // the same twice
  EXPECT_EQ(understand(desc).activation, taccActivationRelu);
  desc.relu = 0;
  desc.pass = taccConvBackwardData;
  EXPECT_THAT(refusal(desc), HasSubstr("belong to the forward pass only"));
}

TEST(Interface, RefusesUnknownLayouts) {
  taccConvDesc_t desc = ordinary();
  desc.outputLayout = static_cast<taccLayout_t>(3);
  EXPECT_THAT(refusal(desc), HasSubstr("output layout 3 is unknown"));
}

TEST(Interface, RefusesBadBuffers) {
  taccConvDesc_t desc = ordinary();
  desc.bias = 1;
  const Case test(desc);
  const PlanFromC c(desc);
  ASSERT_GT(c.info.workspaceBytes, 0U);
  Floats packed(c.info.packedWeightBytes / sizeof(float));
  Floats workspace(c.info.workspaceBytes / sizeof(float));
  Floats result(c.info.outputBytes / sizeof(float));
  const taccConvBuffers_t good{test.input.data(), packed.data(), nullptr,          test.bias.data(),
                               nullptr,           result.data(), workspace.data(), c.info.workspaceBytes};
  const auto error = [&](const taccConvBuffers_t& buffers, const taccExecutor_t* executor) -> std::string {
    EXPECT_EQ(taccConvRun(c.plan, &buffers, executor), taccInvalidArgument);
    return taccGetLastError(nullptr);
  };
  taccConvBuffers_t bad = good;
  bad.input = nullptr;
  EXPECT_THAT(error(bad, taccSerialExecutor()), HasSubstr("input is NULL"));
  bad = good;
  bad.result = result.data() + 1;
  EXPECT_THAT(error(bad, taccSerialExecutor()), HasSubstr("not aligned to 64 bytes"));
  bad = good;
  bad.workspaceBytes -= 64;
  EXPECT_THAT(error(bad, taccSerialExecutor()), HasSubstr("this plan needs"));
  bad = good;
  bad.workspace = nullptr;
  EXPECT_THAT(error(bad, taccSerialExecutor()),
              HasSubstr("this plan needs " + std::to_string(c.info.workspaceBytes) + " bytes"));
  bad = good;
  bad.bias = nullptr;
  EXPECT_THAT(error(bad, taccSerialExecutor()), HasSubstr("bias is NULL"));
  EXPECT_THAT(error(good, nullptr), HasSubstr("executor is NULL"));
  taccExecutor_t wide = *taccSerialExecutor();
  wide.workers = 2;
  EXPECT_THAT(error(good, &wide), HasSubstr("made for 1 to 1; see maxWorkers"));
  EXPECT_EQ(taccConvRun(nullptr, &good, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_EQ(taccConvPackWeights(c.plan, nullptr, packed.data()), taccInvalidArgument);
}

TEST(Interface, HeaderIsC) { EXPECT_EQ(computeHeaderIsC(), 0); }

TEST(Interface, PeakIsThere) { EXPECT_GT(taccMeasurePeak(0.01), 1e8); }

}  // namespace
}  // namespace tacc::conv::test
