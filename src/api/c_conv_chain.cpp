// The C functions of tacc/compute.h for two convolutions one behind the other.
#include <memory>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "api/conv_handle.hpp"
#include "compute/conv/chain.hpp"

using tacc::fail;
using tacc::guard;
using tacc::compute_check::kernels;
using tacc::compute_check::kernelsForFloats;
using tacc::compute_check::require;
using tacc::compute_check::requireAligned;
namespace conv = tacc::conv;

namespace {

std::size_t activationBytes(const conv::Description& d, taccLayout_t layout, int channels, int height, int width) {
  return taccTensorBytes(layout, d.shape.batch, channels, height, width) / (d.isBfloat16 ? 2 : 1);
}

std::size_t weightBytes(const conv::Description& d) {
  const conv::Shape& s = d.shape;
  return taccWeightBytes(d.weightLayout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
}

taccConvInfo_t infoOf(const conv::Chain& chain, const taccConvPlan& plan) {
  const conv::Shape& in = chain.first.shape;
  const conv::Shape& out = chain.second.shape;
  taccConvInfo_t info{};
  info.outHeight = out.outHeight;
  info.outWidth = out.outWidth;
  info.inputBytes = activationBytes(chain.first, chain.first.inputLayout, in.inChannels, in.height, in.width);
  info.outputBytes =
      activationBytes(chain.second, chain.second.outputLayout, out.outChannels, out.outHeight, out.outWidth);
  info.weightBytes = weightBytes(chain.first) + weightBytes(chain.second);
  info.packedWeightBytes = plan.plan->packedFloats() * sizeof(float);
  info.workspaceBytes = plan.plan->workspaceBytes();
  info.operations = in.operations() + out.operations();
  info.predictedSeconds = plan.plan->predictedSeconds();
  info.algorithm = plan.algorithm.data();
  info.kernel = plan.plan->kernel().c_str();
  info.reorderSeconds = plan.plan->reorderSeconds();
  return info;
}

}  // namespace

taccResult_t taccConvChainPlanCreate(taccConvPlan_t* plan, const taccConvDesc_t* first, const taccConvDesc_t* second) {
  return guard("taccConvChainPlanCreate", nullptr, [&] {
    require(plan, "plan");
    require(first, "first");
    require(second, "second");
    const conv::Chain chain = conv::understandChain(*first, *second);
    const bool isNamed = !chain.first.algorithm.empty() || !chain.second.algorithm.empty();
    const bool mayBeSlow = !chain.first.isBfloat16 && !isNamed;
    conv::ChosenChain chosen = conv::makeChain(chain, mayBeSlow ? kernelsForFloats() : kernels());
    conv::Description ends = chain.second;
    ends.inputLayout = chain.first.inputLayout;
    const conv::ChainPlan* const ofChain = chosen.plan.get();
    auto made = std::make_unique<taccConvPlan>(
        taccConvPlan{std::move(ends), chosen.algorithm, std::move(chosen.plan), ofChain, {}});
    made->info = infoOf(chain, *made);
    *plan = made.release();
  });
}

taccResult_t taccConvChainPackWeights(taccConvPlan_t plan, const float* firstWeights, const float* firstBias,
                                      const float* secondWeights, float* packed) {
  return guard("taccConvChainPackWeights", nullptr, [&] {
    require(plan, "plan");
    if (plan->chain == nullptr) {
      fail(taccInvalidUsage, "the plan is of one convolution, whose weights taccConvPackWeights packs");
    }
    require(firstWeights, "firstWeights");
    if (plan->chain->hasFirstBias()) require(firstBias, "firstBias");
    require(secondWeights, "secondWeights");
    requireAligned(packed, "packed");
    plan->chain->packBoth(firstWeights, firstBias, secondWeights, packed);
  });
}
