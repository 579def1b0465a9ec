// tacc as a contestant.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "compute/conv_problem.hpp"
#ifdef TACC_BENCH_OPENMP
#include "tacc/compute_openmp.h"
#endif

namespace tacc::bench {
namespace {

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

struct DestroyPlan {
  void operator()(taccConvPlan_t plan) const { taccConvPlanDestroy(plan); }
};

class TaccContestant final : public ConvContestant {
 public:
  TaccContestant(const ConvProblem& problem, int threads, bool winograd, bool bfloat16, const std::string& algorithm)
      : problem_(problem),
        threads_(threads),
        isHalf_(bfloat16),
        input_(0),
        gradient_(0),
        packed_(0),
        workspace_(0),
        result_(0),
        plain_(problem.isPlain && problem.pass == taccConvBackwardWeights ? problem.resultSize() : 0) {
    taccConvDesc_t desc = problem.layer.describe(problem.pass, problem.batch, threads, winograd);
    if (!algorithm.empty()) desc.algorithm = algorithm.c_str();
    if (isHalf_) desc.activationType = taccBfloat16;
    if (problem.isPlain) desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    if (problem.pass == taccConvBackwardWeights) desc.weightLayout = taccWeightsBlocked;
    taccConvPlan_t plan = nullptr;
    check(taccConvPlanCreate(&plan, &desc));
    plan_.reset(plan);
    check(taccConvPlanGetInfo(plan, &info_));
    fillBuffers();
  }

  void run() override {
    compute();
    if (problem_.isPlain && problem_.pass == taccConvBackwardWeights) bringBack(plain_.data());
  }

  std::string implementation() const override { return fmt::format("{} {}", info_.algorithm, info_.kernel); }

  double predictedSeconds() const override { return info_.predictedSeconds; }

  std::vector<float> result() override {
    std::vector<float> plain(problem_.resultSize());
    bringBack(plain.data());
    return plain;
  }

  bool reorders() const override { return !problem_.isPlain; }

 private:
  void compute() {
#ifdef TACC_BENCH_OPENMP
    if (threads_ > 1) {
      const taccExecutor_t executor = taccOpenMpExecutor(&threads_);
      check(taccConvRun(plan_.get(), &buffers_, &executor));
      return;
    }
#endif
    check(taccConvRun(plan_.get(), &buffers_, taccSerialExecutor()));
  }

  /// The result to NCHW or KCRS.
  void bringBack(float* plain) {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass == taccConvBackwardWeights) {
      check(taccReorderWeights(taccWeightsBlocked, result_.data(), taccWeightsKcrs, plain, l.outChannels, l.inChannels,
                               l.kernel, l.kernelWidth(), l.groups));
    } else if (problem_.pass == taccConvForward) {
      giveBack(plain, l.outChannels, l.outHeight(), l.outWidth());
    } else {
      giveBack(plain, l.inChannels, l.height, l.width);
    }
  }

  /// As Layer::describe() says.
  bool isFirstLayer() const {
    const tools::Layer& l = problem_.layer;
    return l.inChannels <= 4 && l.groups == 1 && problem_.pass != taccConvBackwardData;
  }
  bool isInputAsItIs() const { return problem_.isPlain || (isFirstLayer() && !isHalf_); }

  static std::size_t blockedFloats(int batch, int channels, int height, int width) {
    return taccTensorBytes(taccLayoutNchw16c, batch, channels, height, width) / sizeof(float);
  }

  /// A tensor in NCHW to where the plan wants it.
  void bring(const tools::AlignedFloats& plain, taccLayout_t layout, int channels, int height, int width,
             tools::AlignedFloats& to) {
    if (!isHalf_) {
      check(taccReorder(taccLayoutNchw, plain.data(), layout, to.data(), problem_.batch, channels, height, width));
      return;
    }
    tools::AlignedFloats wide(taccTensorBytes(layout, problem_.batch, channels, height, width) / sizeof(float));
    check(taccReorder(taccLayoutNchw, plain.data(), layout, wide.data(), problem_.batch, channels, height, width));
    check(taccConvertNumbers(taccFloat32, wide.data(), taccBfloat16, to.data(), wide.size()));
  }

  /// The result, a tensor of activations, to NCHW.
  void giveBack(float* plain, int channels, int height, int width) {
    if (problem_.isPlain) {
      std::copy_n(result_.data(), result_.size(), plain);
      return;
    }
    tools::AlignedFloats wide(isHalf_ ? blockedFloats(problem_.batch, channels, height, width) : 0);
    if (isHalf_) check(taccConvertNumbers(taccBfloat16, result_.data(), taccFloat32, wide.data(), wide.size()));
    check(taccReorder(taccLayoutNchw16c, isHalf_ ? wide.data() : result_.data(), taccLayoutNchw, plain, problem_.batch,
                      channels, height, width));
  }

  void fillActivations() override {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass != taccConvBackwardData && !isInputAsItIs()) {
      bring(problem_.input, isFirstLayer() ? taccLayoutNchw : taccLayoutNchw16c, l.inChannels, l.height, l.width,
            input_);
    }
    if (problem_.pass != taccConvForward && !problem_.isPlain) {
      bring(problem_.outputGradient, taccLayoutNchw16c, l.outChannels, l.outHeight(), l.outWidth(), gradient_);
    }
  }

  void fillBuffers() {
    packed_ = tools::AlignedFloats(info_.packedWeightBytes / sizeof(float));
    if (info_.packedWeightBytes > 0) check(taccConvPackWeights(plan_.get(), problem_.weights.data(), packed_.data()));
    if (!isInputAsItIs()) input_ = tools::AlignedFloats((info_.inputBytes + 3) / sizeof(float));
    gradient_ = tools::AlignedFloats(info_.outputBytes / sizeof(float));
    fillActivations();
    workspace_ = tools::AlignedFloats(info_.workspaceBytes / sizeof(float));
    const std::size_t resultBytes = problem_.pass == taccConvForward        ? info_.outputBytes
                                    : problem_.pass == taccConvBackwardData ? info_.inputBytes
                                                                            : info_.weightBytes;
    result_ = tools::AlignedFloats(resultBytes / sizeof(float));
    buffers_ = {isInputAsItIs() ? problem_.input.data() : input_.data(),
                packed_.data(),
                problem_.isPlain ? problem_.outputGradient.data() : gradient_.data(),
                nullptr,
                nullptr,
                result_.data(),
                workspace_.data(),
                info_.workspaceBytes};
  }

  const ConvProblem& problem_;
  int threads_;
  bool isHalf_;  // activations in bfloat16
  std::unique_ptr<taccConvPlan, DestroyPlan> plan_;
  taccConvInfo_t info_{};
  tools::AlignedFloats input_, gradient_, packed_, workspace_, result_, plain_;
  taccConvBuffers_t buffers_{};
};

}  // namespace

std::unique_ptr<ConvContestant> makeTaccContestant(const ConvProblem& problem, int threads, bool winograd,
                                                   bool bfloat16, const std::string& algorithm) {
  return std::make_unique<TaccContestant>(problem, threads, winograd, bfloat16, algorithm);
}

Contestants makeTaccContestants(const ConvProblem& problem, int threads, bool winograd) {
  Contestants contestants;
  std::istringstream names(taccConvAlgorithms());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    if (name == "reference" || (!winograd && name.starts_with("winograd"))) continue;
    try {
      contestants.push_back(makeTaccContestant(problem, threads, winograd, false, name));
    } catch (const std::runtime_error&) {
      // It does not serve this layer.
    }
  }
  return contestants;
}

}  // namespace tacc::bench
