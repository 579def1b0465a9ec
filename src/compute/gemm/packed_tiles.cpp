#include "compute/gemm/packed_tiles.hpp"

#include <algorithm>

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// Rows of B that are read together: hardware looks ahead in that many lines of memory, and what is written of a group
/// follows itself meanwhile.
constexpr int rowsTogether = 16;
/// The same of a transposed B, whose rows are read along.
constexpr int depthTogether = 256;

/// The product reads what is packed soon: more than that hardly stays in the last cache until then.
constexpr std::size_t mostInCaches = std::size_t{32} << 20;

}  // namespace

void packTiles(const Description& d, int first, const conv::DirectDriver& driver, const layers::LayerKernels& kernels,
               const float* b, float* packed) {
  const bool isNonTemporal = driver.packedFloats() * sizeof(float) > mostInCaches;
  const int step = d.transposeB ? depthTogether : rowsTogether;
  for (int row = 0; row < d.k; row += step) {
    const int rows = std::min(step, d.k - row);
    for (const conv::OutGroup& group : driver.groups()) {
      const std::ptrdiff_t toRow = std::ptrdiff_t{group.blocks} * blockLength;
      const int column = first + group.firstBlock * blockLength;
      const int columns = std::min(static_cast<int>(toRow), d.n - column);
      float* const to = packed + group.packed + row * toRow;
      const float* const from = b + (d.transposeB ? column * d.ldb + row : row * d.ldb + column);
      if (!d.transposeB) {
        kernels.gatherRows(from, d.ldb, rows, columns, to, isNonTemporal);
        continue;
      }
      if (columns < toRow) std::fill_n(to, rows * toRow, 0.0F);
      kernels.transpose(from, d.ldb, columns, rows, to, toRow, isNonTemporal);
    }
  }
}

}  // namespace tacc::gemm
