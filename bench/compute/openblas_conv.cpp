// im2col and a product of matrices, as Caffe does it, on OpenBLAS.
#include <cblas.h>

#include <algorithm>
#include <cstring>

#include "compute/conv_problem.hpp"
#include "compute/openblas_core.hpp"

namespace tacc::bench {
namespace {

class OpenblasContestant final : public ConvContestant {
 public:
  explicit OpenblasContestant(const ConvProblem& problem)
      : problem_(problem),
        columns_(isProduct() ? 0 : static_cast<std::size_t>(rows() * pixels())),
        result_(problem.resultSize()) {}

  void run() override {
    if (problem_.pass != taccConvForward) std::memset(result_.data(), 0, result_.size() * sizeof(float));
    const tools::Layer& l = problem_.layer;
    for (int n = 0; n < problem_.batch; ++n) {
      for (int g = 0; g < l.groups; ++g) runGroup(n, g);
    }
  }
  std::string implementation() const override { return "im2col sgemm " + openblasCore(); }
  std::vector<float> result() override { return {result_.data(), result_.data() + result_.size()}; }

 private:
  bool isProduct() const {
    return problem_.layer.kernel.isAll(1) && problem_.layer.stride.isAll(1) && problem_.layer.pad.isAll(0);
  }
  int ins() const { return problem_.layer.inChannels / problem_.layer.groups; }
  int outs() const { return problem_.layer.outChannels / problem_.layer.groups; }
  int rows() const { return ins() * problem_.layer.kernel.height * problem_.layer.kernel.width; }
  int pixels() const { return problem_.layer.outHeight() * problem_.layer.outWidth(); }

  void runGroup(int n, int g) {
    const tools::Layer& l = problem_.layer;
    const std::ptrdiff_t inputAt = (std::ptrdiff_t{n} * l.inChannels + g * ins()) * l.height * l.width;
    const std::ptrdiff_t outputAt = (std::ptrdiff_t{n} * l.outChannels + g * outs()) * pixels();
    const std::ptrdiff_t weightAt = std::ptrdiff_t{g} * outs() * rows();
    const float* const weights = problem_.weights.data() + weightAt;
    const float* const gradient = problem_.outputGradient.data() + outputAt;
    if (problem_.pass == taccConvBackwardData) {
      float* const target = isProduct() ? result_.data() + inputAt : columns_.data();
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows(), pixels(), outs(), 1, weights, rows(), gradient,
                  pixels(), 0, target, pixels());
      if (!isProduct()) addColumns(result_.data() + inputAt);
      return;
    }
    const float* columns = problem_.input.data() + inputAt;
    if (!isProduct()) {
      makeColumns(columns);
      columns = columns_.data();
    }
    if (problem_.pass == taccConvForward) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, outs(), pixels(), rows(), 1, weights, rows(), columns,
                  pixels(), 0, result_.data() + outputAt, pixels());
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, outs(), rows(), pixels(), 1, gradient, pixels(), columns,
                  pixels(), 1, result_.data() + weightAt, rows());
    }
  }

  /// Calls visit(column, line of the image, first x, end x) for each line of the matrix; x in between is in the image.
  template <class Visit>
  void forEachLine(const Visit& visit) {
    const tools::Layer& l = problem_.layer;
    float* column = columns_.data();
    for (int c = 0; c < ins(); ++c) {
      for (int r = 0; r < l.kernel.height; ++r) {
        for (int s = 0; s < l.kernel.width; ++s) {
          for (int y = 0; y < l.outHeight(); ++y, column += l.outWidth())
            visit(column, c, y * l.stride.height - l.pad.height + r * l.dilation.height,
                  s * l.dilation.width - l.pad.width);
        }
      }
    }
  }
  void makeColumns(const float* image) {
    const tools::Layer& l = problem_.layer;
    forEachLine([&](float* column, int c, int line, int first) {
      const float* const from = image + (std::ptrdiff_t{c} * l.height + line) * l.width;
      for (int x = 0; x < l.outWidth(); ++x) {
        const int at = first + x * l.stride.width;
        column[x] = line >= 0 && line < l.height && at >= 0 && at < l.width ? from[at] : 0.0F;
      }
    });
  }
  void addColumns(float* image) {
    const tools::Layer& l = problem_.layer;
    forEachLine([&](const float* column, int c, int line, int first) {
      if (line < 0 || line >= l.height) return;
      float* const to = image + (std::ptrdiff_t{c} * l.height + line) * l.width;
      for (int x = 0; x < l.outWidth(); ++x) {
        const int at = first + x * l.stride.width;
        if (at >= 0 && at < l.width) to[at] += column[x];
      }
    });
  }

  const ConvProblem& problem_;
  tools::AlignedFloats columns_, result_;
};

}  // namespace

Contestants makeOpenblasContestants(const ConvProblem& problem, int threads, bool) {
  openblas_set_num_threads(threads);
  Contestants contestants;
  contestants.push_back(std::make_unique<OpenblasContestant>(problem));
  return contestants;
}

}  // namespace tacc::bench
