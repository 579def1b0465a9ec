// The C functions of tacc/compute.h.
#include <chrono>
#include <memory>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "api/conv_handle.hpp"
#include "compute/conv/algorithms.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/tuning.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

using tacc::fail;
using tacc::guard;
using tacc::compute_check::checkExecutor;
using tacc::compute_check::checkWorkspace;
using tacc::compute_check::kernels;
using tacc::compute_check::kernelsForFloats;
using tacc::compute_check::require;
using tacc::compute_check::requireAligned;
namespace conv = tacc::conv;

namespace {

taccConvInfo_t infoOf(const taccConvPlan& plan) {
  const conv::Description& d = plan.description;
  const conv::Shape& s = d.shape;
  taccConvInfo_t info{};
  info.outHeight = s.outHeight;
  info.outWidth = s.outWidth;
  info.inputBytes = taccTensorBytes(d.inputLayout, s.batch, s.inChannels, s.height, s.width);
  info.outputBytes = taccTensorBytes(d.outputLayout, s.batch, s.outChannels, s.outHeight, s.outWidth);
  if (d.isBfloat16) {
    info.inputBytes /= 2;
    info.outputBytes /= 2;
  }
  info.weightBytes =
      taccWeightBytes(d.weightLayout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
  info.packedWeightBytes = plan.plan->packedFloats() * sizeof(float);
  info.workspaceBytes = plan.plan->workspaceBytes();
  info.operations = s.operations();
  info.predictedSeconds = plan.plan->predictedSeconds();
  info.algorithm = plan.algorithm.data();
  info.kernel = plan.plan->kernel().c_str();
  info.reorderSeconds = plan.plan->reorderSeconds();
  return info;
}

/// Plain layouts may begin anywhere.
void requireActivations(taccLayout_t layout, const void* tensor, const char* name) {
  if (layout == taccLayoutNchw16c) {
    requireAligned(tensor, name);
  } else {
    require(tensor, name);
  }
}

void checkBuffers(const taccConvPlan& plan, const taccConvBuffers_t& buffers) {
  const conv::Description& d = plan.description;
  const bool isForward = d.pass == taccConvForward;
  if (d.pass != taccConvBackwardData) {
    requireActivations(d.inputLayout, buffers.input, "input");
  }
  if (!isForward) requireActivations(d.outputLayout, buffers.outputGradient, "outputGradient");
  if (d.pass != taccConvBackwardWeights) requireAligned(buffers.packedWeights, "packedWeights");
  if (d.bias) require(buffers.bias, "bias");
  if (d.residual) requireActivations(d.outputLayout, buffers.residual, "residual");
  if (d.pass == taccConvBackwardWeights) {
    require(buffers.result, "result");
  } else {
    requireActivations(isForward ? d.outputLayout : d.inputLayout, buffers.result, "result");
  }
  checkWorkspace(buffers.workspace, buffers.workspaceBytes, plan.info.workspaceBytes);
}

void requireTensor(std::size_t bytes, const char* what) {
  if (bytes == 0)
    fail(taccInvalidArgument, "the {} have a size that is not positive or too large, or no known layout", what);
}

}  // namespace

size_t taccTensorBytes(taccLayout_t layout, int batch, int channels, int height, int width) {
  return conv::tensorFloats(layout, batch, channels, height, width) * sizeof(float);
}

size_t taccWeightBytes(taccWeightLayout_t layout, int outChannels, int inChannels, int kernelHeight, int kernelWidth,
                       int groups) {
  return conv::weightFloats(layout, outChannels, inChannels, kernelHeight, kernelWidth, groups) * sizeof(float);
}

taccResult_t taccReorder(taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to, int batch,
                         int channels, int height, int width) {
  return guard("taccReorder", nullptr, [&] {
    requireTensor(taccTensorBytes(fromLayout, batch, channels, height, width), "activations");
    requireTensor(taccTensorBytes(toLayout, batch, channels, height, width), "activations");
    require(from, "from");
    require(to, "to");
    conv::reorder(fromLayout, from, toLayout, to, batch, channels, height, width, tacc::compute_check::layerKernels());
  });
}

taccResult_t taccReorderWeights(taccWeightLayout_t fromLayout, const float* from, taccWeightLayout_t toLayout,
                                float* to, int outChannels, int inChannels, int kernelHeight, int kernelWidth,
                                int groups) {
  return guard("taccReorderWeights", nullptr, [&] {
    requireTensor(taccWeightBytes(fromLayout, outChannels, inChannels, kernelHeight, kernelWidth, groups), "weights");
    requireTensor(taccWeightBytes(toLayout, outChannels, inChannels, kernelHeight, kernelWidth, groups), "weights");
    require(from, "from");
    require(to, "to");
    conv::Shape shape{};
    shape.outChannels = outChannels;
    shape.inChannels = inChannels;
    shape.kernelHeight = kernelHeight;
    shape.kernelWidth = kernelWidth;
    shape.groups = groups;
    conv::reorderWeights(fromLayout, from, toLayout, to, shape);
  });
}

taccResult_t taccConvertNumbers(taccDataType_t fromType, const void* from, taccDataType_t toType, void* to,
                                size_t count) {
  return guard("taccConvertNumbers", nullptr, [&] {
    const bool isToFloat = fromType == taccBfloat16 && toType == taccFloat32;
    if (!isToFloat && !(fromType == taccFloat32 && toType == taccBfloat16)) {
      fail(taccInvalidArgument, "types {} and {} are not taccFloat32 and taccBfloat16, in either order",
           static_cast<int>(fromType), static_cast<int>(toType));
    }
    if (count == 0) return;
    require(from, "from");
    require(to, "to");
    const tacc::layers::LayerKernels& table = tacc::layers::kernelTable(kernels().vectors);
    if (isToFloat) {
      table.fromBfloat16(static_cast<const std::uint16_t*>(from), static_cast<float*>(to), count,
                         tacc::layers::isTooLargeForCaches(count * sizeof(float)));
    } else {
      table.toBfloat16(static_cast<const float*>(from), static_cast<std::uint16_t*>(to), count,
                       tacc::layers::isTooLargeForCaches(count * sizeof(std::uint16_t)));
    }
  });
}

double taccReorderSeconds(int batch, int channels, int height, int width) {
  // A read and a write at what one core of a server moves through its memory.
  constexpr double bytesPerSecond = 8e9;
  return 2.0 * static_cast<double>(taccTensorBytes(taccLayoutNchw16c, batch, channels, height, width)) / bytesPerSecond;
}

const taccExecutor_t* taccSerialExecutor() { return &conv::serialExecutor(); }

taccResult_t taccConvPlanCreate(taccConvPlan_t* plan, const taccConvDesc_t* desc) {
  return guard("taccConvPlanCreate", nullptr, [&] {
    require(plan, "plan");
    require(desc, "desc");
    conv::Description description = conv::understand(*desc);
    const std::shared_ptr<const conv::ConvTuning> tuning = conv::currentTuning();
    if (description.algorithm.empty() && tuning != nullptr) description.algorithm = tuning->find(description);
    // What is named may be what tiles alone serve.
    const bool mayBeSlow = !description.isBfloat16 && description.algorithm.empty();
    conv::ChosenPlan chosen = conv::makePlan(description, mayBeSlow ? kernelsForFloats() : kernels());
    auto made = std::make_unique<taccConvPlan>(
        taccConvPlan{std::move(description), chosen.algorithm, std::move(chosen.plan), nullptr, {}});
    made->info = infoOf(*made);
    *plan = made.release();
  });
}

taccResult_t taccConvPlanDestroy(taccConvPlan_t plan) {
  delete plan;
  return taccSuccess;
}

taccResult_t taccConvPlanGetInfo(taccConvPlan_t plan, taccConvInfo_t* info) {
  return guard("taccConvPlanGetInfo", nullptr, [&] {
    require(plan, "plan");
    require(info, "info");
    *info = plan->info;
  });
}

taccResult_t taccConvPackWeights(taccConvPlan_t plan, const float* weights, float* packed) {
  return guard("taccConvPackWeights", nullptr, [&] {
    require(plan, "plan");
    if (plan->description.pass == taccConvBackwardWeights) {
      fail(taccInvalidUsage, "backward weights reads no weights, so there is nothing to pack");
    }
    if (plan->chain != nullptr) {
      fail(taccInvalidUsage, "the plan is of a chain, whose weights taccConvChainPackWeights packs");
    }
    require(weights, "weights");
    requireAligned(packed, "packed");
    plan->plan->pack(weights, packed);
  });
}

taccResult_t taccConvRun(taccConvPlan_t plan, const taccConvBuffers_t* buffers, const taccExecutor_t* executor) {
  return guard("taccConvRun", nullptr, [&] {
    require(plan, "plan");
    require(buffers, "buffers");
    checkBuffers(*plan, *buffers);
    checkExecutor(executor, plan->description.maxWorkers);
    plan->plan->run({static_cast<const float*>(buffers->input), buffers->packedWeights,
                     static_cast<const float*>(buffers->outputGradient), buffers->bias,
                     static_cast<const float*>(buffers->residual), static_cast<float*>(buffers->result),
                     buffers->workspace, buffers->workspaceBytes},
                    conv::TaskExecutor(*executor));
  });
}

const char* taccConvAlgorithms() {
  static const std::string names = conv::algorithmNames(nullptr);
  return names.c_str();
}

const char* taccComputeIsa() {
  const char* isa = nullptr;
  guard("taccComputeIsa", nullptr, [&] { isa = kernels().isa.data(); });
  return isa;
}

double taccMeasurePeak(double seconds) {
  double best = 0;
  guard("taccMeasurePeak", nullptr, [&] {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    do {
      const auto start = Clock::now();
      const double operations = kernels().multiplyAdds(4000);
      best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
    } while (Clock::now() < end);
  });
  return best;
}
