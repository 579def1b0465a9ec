// oneDNN's products of matrices as a contestant.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "compute/gemm_problem.hpp"

namespace tacc::bench {
namespace {

using Memory = dnnl::memory;

class OnednnGemm final : public GemmContestant {
 public:
  explicit OnednnGemm(const GemmProblem& problem)
      : problem_(problem), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), c_(problem.resultSize()) {
    const GemmShape& s = problem.shape;
    const Memory::desc a = stored({s.batch, s.m, s.k}, s.transposeA);
    const Memory::desc c = stored({s.batch, s.m, s.n}, false);
    const Memory::desc anyB({s.batch, s.k, s.n}, Memory::data_type::f32, Memory::format_tag::any);
    // oneDNN 3 describes a primitive in one step; 2 in two.
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, a, anyB, c);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, anyB, c), engine_);
#endif
    implementation_ = description.impl_info_str();
    packed_ = Memory(description.weights_desc(), engine_);
    product_ = dnnl::matmul(description);
    arguments_ = {{DNNL_ARG_SRC, Memory(a, engine_, const_cast<float*>(problem.a.data()))},
                  {DNNL_ARG_WEIGHTS, packed_},
                  {DNNL_ARG_DST, Memory(c, engine_, c_.data())}};
    pack();
  }

  void run() override {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }
  void pack() final {
    const GemmShape& s = problem_.shape;
    Memory from(stored({s.batch, s.k, s.n}, s.transposeB), engine_, const_cast<float*>(problem_.b.data()));
    dnnl::reorder(from, packed_).execute(stream_, from, packed_);
    stream_.wait();
  }
  std::string implementation() const override { return implementation_; }
  const float* result() override { return c_.data(); }

 private:
  static Memory::desc stored(const Memory::dims& dims, bool isTransposed) {
    return {dims, Memory::data_type::f32, isTransposed ? Memory::format_tag::acb : Memory::format_tag::abc};
  }

  const GemmProblem& problem_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive product_;
  Memory packed_;
  std::unordered_map<int, Memory> arguments_;
  std::string implementation_;
  tools::AlignedFloats c_;
};

}  // namespace

std::unique_ptr<GemmContestant> makeOnednnGemm(const GemmProblem& problem, int threads) {
  omp_set_num_threads(threads);
  return std::make_unique<OnednnGemm>(problem);
}

}  // namespace tacc::bench
