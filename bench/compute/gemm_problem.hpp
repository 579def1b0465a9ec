// One product of matrices, or a batch of them, to be timed, and those who compute it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compute/conv_problem.hpp"

namespace tacc::bench {

/// C = A * B with m x k and k x n numbers, `batch` times.
struct GemmShape {
  int m, n, k;
  int batch;
  bool transposeA = false, transposeB = false;  ///< stored as k rows of m, and n rows of k
  double operations() const { return 2.0 * m * n * k * batch; }
  /// "64x128x256", with BLAS's letters behind it where a matrix is transposed: "64x128x256 TN".
  std::string text() const;
};

/// Reads "MxNxK". Throws std::invalid_argument that says what is wrong.
GemmShape parseGemmShape(const std::string& text, int batch);

/// `count` shapes, the same for the same seed: sizes from 1 to 2,048, drawn by their logarithm, of 40,000 to 4e9
/// operations.
std::vector<GemmShape> drawGemmShapes(int count, std::uint64_t seed);

/// Row-major matrices, one after the other. Small integers, so every order of summing gives the same.
struct GemmProblem {
  explicit GemmProblem(const GemmShape& shape);
  GemmShape shape;
  tools::AlignedFloats a, b;

  std::size_t resultSize() const;
  /// How many of some elements of a result are wrong.
  std::size_t countWrong(const float* c) const;
};

/// One way to compute it. Made ready by its maker, with B in the order that it likes best.
class GemmContestant {
 public:
  virtual ~GemmContestant() = default;
  virtual void run() = 0;
  /// Brings B into that order again; for libraries that do it in every run, nothing.
  virtual void pack() {}
  virtual std::string implementation() const = 0;
  virtual const float* result() = 0;
};

std::unique_ptr<GemmContestant> makeTaccGemm(const GemmProblem& problem, int threads);

struct GemmPeer {
  std::string name;
  std::unique_ptr<GemmContestant> (*make)(const GemmProblem& problem, int threads);
};

/// matmul with B in a layout of oneDNN's choice. Defined where it is installed.
std::unique_ptr<GemmContestant> makeOnednnGemm(const GemmProblem& problem, int threads);
/// cblas_sgemm, once per product. Defined where it is installed.
std::unique_ptr<GemmContestant> makeOpenblasGemm(const GemmProblem& problem, int threads);

/// Those that were built in.
const std::vector<GemmPeer>& gemmPeers();

}  // namespace tacc::bench
