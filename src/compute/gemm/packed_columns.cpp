#include "compute/gemm/packed_columns.hpp"

#include <algorithm>

namespace tacc::gemm {
namespace {

/// Rows of B that are read together: hardware looks ahead in that many lines of memory, and what is written of a group
/// follows itself meanwhile.
constexpr int rowsTogether = 16;
/// The same of a transposed B, whose rows are read along.
constexpr int depthTogether = 256;

/// The product reads what is packed soon: more than that hardly stays in the last cache until then.
constexpr std::size_t mostInCaches = std::size_t{32} << 20;

}  // namespace

void packColumns(const Description& d, const std::vector<ColumnGroup>& groups, const layers::LayerKernels& kernels,
                 const float* b, float* packed) {
  std::size_t width = 0;
  for (const ColumnGroup& group : groups) width += static_cast<std::size_t>(group.width);
  const bool isNonTemporal = width * static_cast<std::size_t>(d.k) * sizeof(float) > mostInCaches;
  const int step = d.transposeB ? depthTogether : rowsTogether;
  for (int row = 0; row < d.k; row += step) {
    const int rows = std::min(step, d.k - row);
    for (const ColumnGroup& group : groups) {
      float* const to = packed + group.packed + std::ptrdiff_t{row} * group.width;
      const float* const from = b + (d.transposeB ? group.first * d.ldb + row : row * d.ldb + group.first);
      if (!d.transposeB) {
        kernels.gatherRows(from, d.ldb, rows, group.columns, to, isNonTemporal);
        continue;
      }
      if (group.columns < group.width) std::fill_n(to, std::ptrdiff_t{rows} * group.width, 0.0F);
      kernels.transpose(from, d.ldb, group.columns, rows, to, group.width, isNonTemporal);
    }
  }
}

}  // namespace tacc::gemm
