// tacc's chains of two convolutions as contestants.
#include <fmt/format.h>

#include "compute/conv_chain.hpp"
#include "compute/tacc_calls.hpp"

namespace tacc::bench {
namespace {

class TaccChain final : public ConvContestant {
 public:
  TaccChain(const ConvProblem& first, const ConvProblem& second, int threads, const std::string& algorithm)
      : second_(second), threads_(threads) {
    taccConvDesc_t one = first.layer.describe(taccConvForward, first.batch, threads, false);
    const taccConvDesc_t other = second.layer.describe(taccConvForward, second.batch, threads, false);
    if (!algorithm.empty()) one.algorithm = algorithm.c_str();
    taccConvPlan_t plan = nullptr;
    check(taccConvChainPlanCreate(&plan, &one, &other));
    plan_.reset(plan);
    check(taccConvPlanGetInfo(plan, &info_));
    packed_ = tools::AlignedFloats(info_.packedWeightBytes / sizeof(float));
    check(taccConvChainPackWeights(plan, first.weights.data(), nullptr, second.weights.data(), packed_.data()));
    input_ = tools::AlignedFloats(info_.inputBytes / sizeof(float));
    const tools::Layer& l = first.layer;
    check(taccReorder(taccLayoutNchw, first.input.data(), one.inputLayout, input_.data(), first.batch, l.inChannels,
                      l.height, l.width));
    workspace_ = tools::AlignedFloats(info_.workspaceBytes / sizeof(float));
    result_ = tools::AlignedFloats(info_.outputBytes / sizeof(float));
    outputLayout_ = other.outputLayout;
    buffers_ = {input_.data(), packed_.data(), nullptr,           nullptr,
                nullptr,       result_.data(), workspace_.data(), info_.workspaceBytes};
  }

  void run() override {
    runOn(threads_, [&](const taccExecutor_t* executor) { return taccConvRun(plan_.get(), &buffers_, executor); });
  }
  std::string implementation() const override { return fmt::format("{} {}", info_.algorithm, info_.kernel); }
  double predictedSeconds() const override { return info_.predictedSeconds; }
  std::vector<float> result() override {
    const tools::Layer& l = second_.layer;
    std::vector<float> plain(second_.resultSize());
    check(taccReorder(outputLayout_, result_.data(), taccLayoutNchw, plain.data(), second_.batch, l.outChannels,
                      l.outHeight(), l.outWidth()));
    return plain;
  }

 private:
  const ConvProblem& second_;
  int threads_;
  std::unique_ptr<taccConvPlan, DestroyConvPlan> plan_;
  taccConvInfo_t info_{};
  taccLayout_t outputLayout_ = taccLayoutNchw16c;
  tools::AlignedFloats input_{0}, packed_{0}, workspace_{0}, result_{0};
  taccConvBuffers_t buffers_{};
};

}  // namespace

std::unique_ptr<ConvContestant> makeTaccChain(const ConvProblem& first, const ConvProblem& second, int threads,
                                              const std::string& algorithm) {
  return std::make_unique<TaccChain>(first, second, threads, algorithm);
}

}  // namespace tacc::bench
