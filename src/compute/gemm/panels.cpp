#include "compute/gemm/panels.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"
#include "compute/gemm/gemm_prices.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;
using layers::panelColumns;

constexpr int roundedColumns(int columns) { return conv::ceilDivide(columns, blockLength) * blockLength; }

}  // namespace

Panels::Panels(const Description& d, int first, const conv::KernelSet& kernels)
    : d_(d),
      first_(first),
      columns_(d.n - first),
      kernels_(layers::kernelTable(kernels.vectors)),
      productCycles_(1.15 * conv::productCycles(kernels, 1, 1)) {
  for (int column = 0; column < columns_; column += panelColumns) {
    const int columns = std::min(panelColumns, columns_ - column);
    groups_.push_back({first + column, columns, roundedColumns(columns), std::ptrdiff_t{column} * d.k});
  }
}

std::size_t Panels::packedFloats() const {
  return static_cast<std::size_t>(roundedColumns(columns_)) * static_cast<std::size_t>(d_.k);
}

void Panels::pack(const float* b, float* packed) const { packColumns(d_, groups_, kernels_, b, packed); }

void Panels::run(const float* a, std::ptrdiff_t rowStride, const float* packed, const float* bias, float* c,
                 RowRange rows, int firstPanel, int endPanel) const {
  const int column = firstPanel * panelColumns;
  float* const results = c + rows.from * d_.ldc + first_ + column;
  kernels_.panelProducts({a + rows.from * rowStride, rowStride, rows.count(), packed + std::ptrdiff_t{column} * d_.k,
                          d_.k, std::min(columns_, endPanel * panelColumns) - column,
                          d_.bias ? bias + first_ + column : nullptr, results, d_.ldc, d_.accumulate, d_.relu});
}

double Panels::cycles() const {
  // Rows that are multiplied together; and those, at most, that go along whole panels.
  constexpr int rowsAtOnce = 6, fewRows = 3;
  // What fetching a line of a panel takes, from either cache; and where a deep panel is gone through in parts.
  constexpr double lineOfL1 = 1, lineOfL2 = 1.6, ofParts = 1.1, ofWholeBeyond = 0.85, ofPartsBeyond = 2;
  constexpr int deep = 256;
  constexpr double ofTile = 5, ofRow = 1;
  const double ofLine = conv::stayInL1(packedFloats() * sizeof(float)) ? lineOfL1 : lineOfL2;
  // Of a single block of columns, every product takes a number of its own from a row.
  const double ofProduct = productCycles_ * (columns_ <= blockLength && d_.m > rowsAtOnce ? 1.3 : 1);
  const auto ofRows = [&](int rows) { return std::max(rows * ofProduct, ofLine); };
  const int whole = d_.m / rowsAtOnce, rest = d_.m % rowsAtOnce;
  const double ofAllRows = whole * ofRows(rowsAtOnce) + (rest > 0 ? ofRows(rest) : 0);
  const double tiles = double(conv::ceilDivide(d_.m, rowsAtOnce)) * conv::ceilDivide(columns_, 4 * blockLength);
  const double perNumber = std::max(conv::ceilDivide(columns_, blockLength) * ofAllRows, tiles * conv::latencyCycles);
  const double products = d_.k * perNumber * (d_.k > deep && d_.m > rowsAtOnce ? ofParts : 1);
  const double sums =
      withResults(products, d_, columns_, {2, 4.5, 10}) + ofTile * tiles + ofRow * d_.m + conv::callCycles;
  // More rows go through a panel in parts of its columns. One that leaves the L2 cache comes again for each part, in
  // pieces that hardware does not look ahead in, and for each group of rows; others for each task's rows.
  const bool comesAgain = !conv::staysInL2(static_cast<std::size_t>(d_.k) * panelColumns * sizeof(float));
  const int passes = comesAgain ? conv::ceilDivide(d_.m, rowsAtOnce) : static_cast<int>(RowTasks::partsOf(d_.m));
  const double ofPass = d_.m <= fewRows ? ofWholeBeyond : comesAgain ? 2 * ofPartsBeyond : ofPartsBeyond;
  const double times = passes * ofPass;
  return withMatrix(sums, times, packedFloats());
}

}  // namespace tacc::gemm
