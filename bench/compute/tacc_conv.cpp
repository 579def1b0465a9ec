// tacc as a contestant.
#include <fmt/format.h>

#include <chrono>
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
  TaccContestant(const ConvProblem& problem, int threads, bool winograd)
      : problem_(problem), threads_(threads), input_(0), gradient_(0), packed_(0), workspace_(0), result_(0) {
    const Layer& l = problem.layer;
    taccConvDesc_t desc = TACC_CONV_INITIALIZER;
    desc.pass = problem.pass;
    desc.batch = problem.batch;
    desc.inChannels = l.inChannels;
    desc.height = l.height;
    desc.width = l.width;
    desc.outChannels = l.outChannels;
    desc.kernelHeight = desc.kernelWidth = l.kernel;
    desc.strideHeight = desc.strideWidth = l.stride;
    desc.padHeight = desc.padWidth = l.pad;
    desc.groups = l.groups;
    desc.maxWorkers = threads;
    desc.winograd = winograd && problem.pass != taccConvBackwardWeights;
    desc.inputLayout = isFirstLayer() ? taccLayoutNchw : taccLayoutNchw16c;
    if (problem.pass == taccConvBackwardWeights) desc.weightLayout = taccWeightsBlocked;
    taccConvPlan_t plan = nullptr;
    check(taccConvPlanCreate(&plan, &desc));
    plan_.reset(plan);
    check(taccConvPlanGetInfo(plan, &info_));
    fillBuffers();
  }

  void run() override {
#ifdef TACC_BENCH_OPENMP
    if (threads_ > 1) {
      const taccExecutor_t executor = taccOpenMpExecutor(&threads_);
      check(taccConvRun(plan_.get(), &buffers_, &executor));
      return;
    }
#endif
    check(taccConvRun(plan_.get(), &buffers_, taccSerialExecutor()));
  }

  std::string implementation() const override { return fmt::format("{} {}", info_.algorithm, info_.kernel); }

  std::vector<float> result() override {
    std::vector<float> plain(problem_.resultSize());
    const Layer& l = problem_.layer;
    if (problem_.pass == taccConvBackwardWeights) {
      check(taccReorderWeights(taccWeightsBlocked, result_.data(), taccWeightsKcrs, plain.data(), l.outChannels,
                               l.inChannels, l.kernel, l.kernel, l.groups));
    } else if (problem_.pass == taccConvForward) {
      check(taccReorder(taccLayoutNchw16c, result_.data(), taccLayoutNchw, plain.data(), problem_.batch, l.outChannels,
                        l.outHeight(), l.outWidth()));
    } else {
      check(taccReorder(taccLayoutNchw16c, result_.data(), taccLayoutNchw, plain.data(), problem_.batch, l.inChannels,
                        l.height, l.width));
    }
    return plain;
  }

  double reorderSeconds() override {
    const auto start = std::chrono::steady_clock::now();
    fillActivations();
    result();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  bool isFirstLayer() const { return problem_.layer.inChannels <= 4 && problem_.pass != taccConvBackwardData; }

  void fillActivations() {
    const Layer& l = problem_.layer;
    if (problem_.pass != taccConvBackwardData && !isFirstLayer()) {
      check(taccReorder(taccLayoutNchw, problem_.input.data(), taccLayoutNchw16c, input_.data(), problem_.batch,
                        l.inChannels, l.height, l.width));
    }
    if (problem_.pass != taccConvForward) {
      check(taccReorder(taccLayoutNchw, problem_.outputGradient.data(), taccLayoutNchw16c, gradient_.data(),
                        problem_.batch, l.outChannels, l.outHeight(), l.outWidth()));
    }
  }

  void fillBuffers() {
    packed_ = AlignedFloats(info_.packedWeightBytes / sizeof(float));
    if (info_.packedWeightBytes > 0) check(taccConvPackWeights(plan_.get(), problem_.weights.data(), packed_.data()));
    if (!isFirstLayer()) input_ = AlignedFloats(info_.inputBytes / sizeof(float));
    gradient_ = AlignedFloats(info_.outputBytes / sizeof(float));
    fillActivations();
    workspace_ = AlignedFloats(info_.workspaceBytes / sizeof(float));
    const std::size_t resultBytes = problem_.pass == taccConvForward        ? info_.outputBytes
                                    : problem_.pass == taccConvBackwardData ? info_.inputBytes
                                                                            : info_.weightBytes;
    result_ = AlignedFloats(resultBytes / sizeof(float));
    buffers_ = {isFirstLayer() ? problem_.input.data() : input_.data(),
                packed_.data(),
                gradient_.data(),
                nullptr,
                nullptr,
                result_.data(),
                workspace_.data(),
                info_.workspaceBytes};
  }

  const ConvProblem& problem_;
  int threads_;
  std::unique_ptr<taccConvPlan, DestroyPlan> plan_;
  taccConvInfo_t info_{};
  AlignedFloats input_, gradient_, packed_, workspace_, result_;
  taccConvBuffers_t buffers_{};
};

}  // namespace

std::unique_ptr<ConvContestant> makeTaccContestant(const ConvProblem& problem, int threads, bool winograd) {
  return std::make_unique<TaccContestant>(problem, threads, winograd);
}

}  // namespace tacc::bench
