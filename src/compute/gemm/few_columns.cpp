#include "compute/gemm/few_columns.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::gemm {
namespace {

constexpr int mostColumns = 4;
constexpr int rowsAtOnce = 8;  // whose sums are in registers
/// Of a row and a column what is multiplied before the next rows are: the L1 cache has them for all columns.
constexpr int columnDepthAtOnce = 1024;

std::ptrdiff_t paddedDepth(const Description& d) {
  return (std::ptrdiff_t{d.k} + conv::planePadding - 1) / conv::planePadding * conv::planePadding;
}

}  // namespace

bool hasFewColumns(const Description& d) { return d.n <= mostColumns && d.k >= conv::planePadding; }

FewColumns::FewColumns(const Description& d, const conv::KernelSet& kernels)
    : d_(d), kernels_(conv::planeKernels(kernels)) {}

std::size_t FewColumns::packedFloats() const { return static_cast<std::size_t>(paddedDepth(d_) * d_.n); }

void FewColumns::pack(const float* b, float* packed) const {
  for (int j = 0; j < d_.n; ++j, packed += paddedDepth(d_)) {
    for (int depth = 0; depth < d_.k; ++depth) {
      packed[depth] = d_.transposeB ? b[j * d_.ldb + depth] : b[depth * d_.ldb + j];
    }
    std::fill(packed + d_.k, packed + paddedDepth(d_), 0.0F);
  }
}

void FewColumns::run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c,
                     int from, int to) const {
  constexpr int sumsOfColumn = rowsAtOnce * conv::planeSumFloats;
  const int whole = d_.k / conv::planePadding * conv::planePadding;
  alignas(64) float sums[mostColumns * sumsOfColumn];
  alignas(64) float ends[rowsAtOnce * conv::planePadding];
  for (int row = from; row < to; row += rowsAtOnce) {
    const int rows = std::min(rowsAtOnce, to - row);
    std::fill(std::begin(sums), std::end(sums), 0.0F);
    conv::PlaneValue values[rowsAtOnce];
    conv::PlaneGradientCall call{values, rows, 0, nullptr, nullptr};
    const auto addAll = [&](int depth, int count) {
      call.pixels = count;
      for (int j = 0; j < d_.n; ++j) {
        call.gradient = packed + j * paddedDepth(d_) + depth;
        call.sums = sums + j * sumsOfColumn;
        kernels_.gradient(call);
      }
    };
    for (int depth = 0; depth < whole; depth += columnDepthAtOnce) {
      for (int r = 0; r < rows; ++r) values[r] = {a + (row + r) * rowStride + depth, r};
      addAll(depth, std::min(columnDepthAtOnce, whole - depth));
    }
    if (whole < d_.k) {
      // What comes behind a row is not to be read.
      std::fill(std::begin(ends), std::end(ends), 0.0F);
      for (int r = 0; r < rows; ++r) {
        float* const end = ends + std::ptrdiff_t{r} * conv::planePadding;
        std::copy_n(a + (row + r) * rowStride + whole, d_.k - whole, end);
        values[r] = {end, r};
      }
      addAll(whole, conv::planePadding);
    }
    store(sums, bias, c, row, rows);
  }
}

void FewColumns::store(const float* sums, const float* bias, float* c, int row, int rows) const {
  for (int j = 0; j < d_.n; ++j) {
    for (int r = 0; r < rows; ++r, sums += conv::planeSumFloats) {
      float sum = 0;
      for (int lane = 0; lane < kernels_.lanes; ++lane) sum += sums[lane];
      float& to = c[(row + r) * d_.ldc + j];
      if (d_.bias) sum += bias[j];
      if (d_.accumulate) sum += to;
      to = d_.relu ? std::max(sum, 0.0F) : sum;
    }
    sums += (rowsAtOnce - rows) * conv::planeSumFloats;
  }
}

double FewColumns::cycles() const {
  const double vectors = static_cast<double>(paddedDepth(d_)) / kernels_.lanes;
  return double(d_.m) * d_.n * (0.6 * vectors + 20);
}

}  // namespace tacc::gemm
