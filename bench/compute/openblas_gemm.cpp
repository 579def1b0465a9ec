// OpenBLAS's products of matrices as a contestant.
#include <cblas.h>

#include "compute/gemm_problem.hpp"
#include "compute/openblas_core.hpp"

namespace tacc::bench {
namespace {

class OpenblasGemm final : public GemmContestant {
 public:
  explicit OpenblasGemm(const GemmProblem& problem) : problem_(problem), c_(problem.resultSize()) {}

  void run() override {
    const GemmShape& s = problem_.shape;
    for (std::ptrdiff_t i = 0; i < s.batch; ++i) {
      cblas_sgemm(CblasRowMajor, s.transposeA ? CblasTrans : CblasNoTrans, s.transposeB ? CblasTrans : CblasNoTrans,
                  s.m, s.n, s.k, 1, problem_.a.data() + i * s.m * s.k, s.transposeA ? s.m : s.k,
                  problem_.b.data() + i * s.k * s.n, s.transposeB ? s.k : s.n, 0, c_.data() + i * s.m * s.n, s.n);
    }
  }
  std::string implementation() const override { return "sgemm " + openblasCore(); }
  const float* result() override { return c_.data(); }

 private:
  const GemmProblem& problem_;
  tools::AlignedFloats c_;
};

}  // namespace

std::unique_ptr<GemmContestant> makeOpenblasGemm(const GemmProblem& problem, int threads) {
  openblas_set_num_threads(threads);
  return std::make_unique<OpenblasGemm>(problem);
}

}  // namespace tacc::bench
