// taccConvRun takes no memory, the first time in a process neither.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "tacc/compute.h"
#include "tacc/tacc.h"

namespace {

bool counts = false;
int taken = 0;

}  // namespace

// Not in line, where the compiler would see malloc() and delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (counts) ++taken;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tacc::test {
namespace {

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory zeros(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t whole = (bytes + alignment) / alignment * alignment;
  Memory memory(std::aligned_alloc(alignment, whole));
  std::fill_n(static_cast<std::byte*>(memory.get()), whole, std::byte{});
  return memory;
}

void expectNoneTaken(const taccConvDesc_t& desc) {
  taccConvPlan_t plan = nullptr;
  ASSERT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
  taccConvInfo_t info = {};
  ASSERT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  const Memory input = zeros(info.inputBytes), output = zeros(info.outputBytes), workspace = zeros(info.workspaceBytes);
  const Memory weights = zeros(info.weightBytes), packed = zeros(info.packedWeightBytes);
  const bool isData = desc.pass == taccConvBackwardData, isGradient = desc.pass == taccConvBackwardWeights;
  if (!isGradient) {
    const auto* const from = static_cast<const float*>(weights.get());
    ASSERT_EQ(taccConvPackWeights(plan, from, static_cast<float*>(packed.get())), taccSuccess);
  }
  taccConvBuffers_t buffers = {};
  const auto floats = [](const Memory& memory) { return static_cast<float*>(memory.get()); };
  buffers.input = floats(input);
  buffers.outputGradient = floats(output);
  buffers.packedWeights = floats(packed);
  buffers.result = isGradient ? floats(weights) : isData ? floats(input) : floats(output);
  buffers.workspace = workspace.get();
  buffers.workspaceBytes = info.workspaceBytes;
  taken = 0;
  counts = true;
  const taccResult_t result = taccConvRun(plan, &buffers, taccSerialExecutor());
  counts = false;
  EXPECT_EQ(result, taccSuccess) << taccGetLastError(nullptr);
  EXPECT_EQ(taken, 0) << info.algorithm << ", pass " << desc.pass << ", " << desc.inChannels << " channels in "
                      << desc.groups << " groups, kernel " << desc.kernelHeight << ", layout " << desc.inputLayout
                      << ", weights " << desc.weightLayout;
  taccConvPlanDestroy(plan);
}

TEST(ConvRun, TakesNoMemory) {
  for (const taccConvPass_t pass : {taccConvBackwardWeights, taccConvForward, taccConvBackwardData})
    for (const taccLayout_t layout : {taccLayoutNchw16c, taccLayoutNhwc, taccLayoutNchw})
      for (const taccWeightLayout_t weights : {taccWeightsKcrs, taccWeightsBlocked})
        for (const int channels : {64, 3, 24})
          for (const int kernel : {3, 1})
            for (const int groups : {1, channels}) {
              taccConvDesc_t desc = TACC_CONV_INITIALIZER;
              desc.pass = pass;
              desc.batch = 2;
              desc.inChannels = desc.outChannels = channels;
              desc.height = desc.width = 14;
              desc.kernelHeight = desc.kernelWidth = kernel;
              desc.padHeight = desc.padWidth = kernel / 2;
              desc.groups = groups;
              desc.inputLayout = desc.outputLayout = layout;
              desc.weightLayout = weights;
              expectNoneTaken(desc);
              if (HasFatalFailure()) return;
            }
}

/// Gradients of the weights of four pixels, which have an algorithm of their own.
TEST(ConvRun, OfFewPixelsTakesNoMemory) {
  for (const taccWeightLayout_t weights : {taccWeightsKcrs, taccWeightsBlocked}) {
    taccConvDesc_t desc = TACC_CONV_INITIALIZER;
    desc.pass = taccConvBackwardWeights;
    desc.batch = 1;
    desc.inChannels = 72;
    desc.outChannels = 88;
    desc.height = desc.width = 2;
    desc.kernelHeight = desc.kernelWidth = 3;
    desc.padHeight = desc.padWidth = 1;
    desc.weightLayout = weights;
    expectNoneTaken(desc);
  }
}

}  // namespace
}  // namespace tacc::test
