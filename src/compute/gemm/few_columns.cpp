#include "compute/gemm/few_columns.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// A multiple of all numbers of rows that a kernel has sums of.
constexpr int rowsAtOnce = 24;
/// Of a row and a column what is multiplied before the next columns are: the L1 cache has it for a kernel's rows.
constexpr std::ptrdiff_t chunkDepth = 512;

/// From column to column, which are to use different sets of the L1 cache.
std::ptrdiff_t paddedDepth(const Description& d) {
  constexpr std::ptrdiff_t floatsOfSets = 512;
  const std::ptrdiff_t depth = (std::ptrdiff_t{d.k} + blockLength - 1) / blockLength * blockLength;
  return depth % floatsOfSets == 0 ? depth + blockLength : depth;
}

}  // namespace

FewColumns::FewColumns(const Description& d, int first, const conv::KernelSet& kernels)
    : d_(d),
      first_(first),
      lanes_(kernels.fmaLanes),
      kernels_(layers::kernelTable(kernels.vectors)),
      productCycles_(conv::productCycles(kernels, 1, 1) * kernels.fmaLanes / blockLength) {
  d_.n -= first;
}

std::size_t FewColumns::packedFloats() const { return static_cast<std::size_t>(paddedDepth(d_) * d_.n); }

void FewColumns::pack(const float* b, float* packed) const {
  const std::ptrdiff_t column = paddedDepth(d_);
  if (d_.transposeB) {
    for (int j = 0; j < d_.n; ++j) std::copy_n(b + (first_ + j) * d_.ldb, d_.k, packed + j * column);
  } else {
    kernels_.transpose(b + first_, d_.ldb, d_.k, d_.n, packed, column, false);
  }
  for (int j = 0; j < d_.n; ++j) std::fill(packed + j * column + d_.k, packed + (j + 1) * column, 0.0F);
}

void FewColumns::run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c,
                     int from, int to) const {
  for (int row = from; row < to; row += rowsAtOnce) {
    const int rows = std::min(rowsAtOnce, to - row);
    float* const results = c + row * d_.ldc + first_;
    layers::InnerProductCall call{nullptr, rowStride, rows,    nullptr, paddedDepth(d_),
                                  d_.n,    0,         results, d_.ldc,  d_.accumulate};
    for (std::ptrdiff_t depth = 0; depth < d_.k; depth += chunkDepth, call.adds = true) {
      call.rows = a + row * rowStride + depth;
      call.columns = packed + depth;
      call.depth = std::min(chunkDepth, d_.k - depth);
      kernels_.innerProducts(call);
    }
    if (d_.bias || d_.relu) finish(results, rows, bias);
  }
}

void FewColumns::finish(float* results, int rows, const float* bias) const {
  for (int r = 0; r < rows; ++r, results += d_.ldc) {
    for (int j = 0; j < d_.n; ++j) {
      const float sum = results[j] + (d_.bias ? bias[first_ + j] : 0.0F);
      results[j] = d_.relu ? std::max(sum, 0.0F) : sum;
    }
  }
}

double FewColumns::cycles() const {
  constexpr double ofResult = 4;
  const double vectors = static_cast<double>(paddedDepth(d_)) / lanes_;
  return double(d_.m) * d_.n * (1.1 * productCycles_ * vectors + ofResult);
}

}  // namespace tacc::gemm
