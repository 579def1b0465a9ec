// tacc's products of matrices as a contestant.

#include "compute/gemm_problem.hpp"
#include "compute/tacc_calls.hpp"

namespace tacc::bench {
namespace {

struct DestroyPlan {
  void operator()(taccGemmPlan_t plan) const { taccGemmPlanDestroy(plan); }
};

class TaccGemm final : public GemmContestant {
 public:
  TaccGemm(const GemmProblem& problem, int threads)
      : problem_(problem), threads_(threads), packed_(0), workspace_(0), c_(problem.resultSize()) {
    taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
    desc.m = problem.shape.m;
    desc.n = problem.shape.n;
    desc.k = problem.shape.k;
    desc.batch = problem.shape.batch;
    desc.transposeA = problem.shape.transposeA ? 1 : 0;
    desc.transposeB = problem.shape.transposeB ? 1 : 0;
    desc.maxWorkers = threads;
    taccGemmPlan_t plan = nullptr;
    check(taccGemmPlanCreate(&plan, &desc));
    plan_.reset(plan);
    check(taccGemmPlanGetInfo(plan, &info_));
    packed_ = tools::AlignedFloats(info_.packedBytes / sizeof(float));
    workspace_ = tools::AlignedFloats(info_.workspaceBytes / sizeof(float));
    buffers_ = {problem.a.data(), packed_.data(), nullptr, c_.data(), workspace_.data(), info_.workspaceBytes};
    pack();
  }

  void run() override {
    runOn(threads_, [&](const taccExecutor_t* executor) { return taccGemmRun(plan_.get(), &buffers_, executor); });
  }
  void pack() final { check(taccGemmPack(plan_.get(), problem_.b.data(), packed_.data())); }
  std::string implementation() const override { return info_.kernel; }
  const float* result() override { return c_.data(); }

 private:
  const GemmProblem& problem_;
  int threads_;
  std::unique_ptr<taccGemmPlan, DestroyPlan> plan_;
  taccGemmInfo_t info_{};
  tools::AlignedFloats packed_, workspace_, c_;
  taccGemmBuffers_t buffers_{};
};

}  // namespace

std::unique_ptr<GemmContestant> makeTaccGemm(const GemmProblem& problem, int threads) {
  return std::make_unique<TaccGemm>(problem, threads);
}

}  // namespace tacc::bench
