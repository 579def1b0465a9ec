// Inner products of rows with columns that follow each other in memory: sums of some rows and columns stay in
// registers, a vector of each row and column is read once for all of them, and what is in the lanes is added up at
// last, of many sums at once.
#include <utility>

#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

#if TACC_LANES == 16 || (defined(__aarch64__) && TACC_LANES == 4)
inline constexpr int innerColumns = 4;  // 32 registers
#else
inline constexpr int innerColumns = 3;
#endif

/// Rows whose sums fit into the registers beside a vector of every column and one of a row.
constexpr int innerRows(int columns) {
  if (innerColumns == 3) return columns == 1 ? 8 : 4;
  return columns == 4 ? 6 : 8;
}

/// The sums of neighbouring lanes, of the lanes of `a` first and then of those of `b`.
template <int... kIndex>
[[gnu::always_inline]] inline Vector addNeighbours(Vector a, Vector b, std::integer_sequence<int, kIndex...>) {
  return __builtin_shufflevector(a, b, 2 * kIndex...) + __builtin_shufflevector(a, b, 2 * kIndex + 1 ...);
}

/// Lane i becomes the sum of the lanes of sums[i].
[[gnu::always_inline]] inline Vector addLanes(Vector (&sums)[TACC_LANES]) {
#pragma GCC unroll 4
  for (int count = TACC_LANES / 2; count > 0; count /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      sums[i] = addNeighbours(sums[2 * i], sums[2 * i + 1], std::make_integer_sequence<int, TACC_LANES>());
    }
  }
  return sums[0];
}

/// Writes the results of sums [kFirst, kFirst + as many as a vector has lanes).
template <int kFirst, int kRows, int kColumns>
[[gnu::always_inline]] inline void deliverSums(const InnerProductCall& call, const Vector (&sum)[kRows][kColumns],
                                               float* results) {
  constexpr int kLeft = kRows * kColumns - kFirst;
  constexpr int kCount = kLeft < TACC_LANES ? kLeft : TACC_LANES;
  Vector some[TACC_LANES] = {};
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) some[i] = sum[(kFirst + i) / kColumns][(kFirst + i) % kColumns];
  float totals[TACC_LANES];
  store(totals, addLanes(some));
  const auto place = [&](int i) __attribute__((always_inline)) {
    return results + (kFirst + i) / kColumns * call.resultStride + (kFirst + i) % kColumns;
  };
  if (call.adds) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) *place(i) += totals[i];
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) *place(i) = totals[i];
  }
}

template <int kRows, int kColumns>
[[gnu::always_inline]] inline void innerTile(const InnerProductCall& call, const float* rows, const float* columns,
                                             float* results) {
  Vector sum[kRows][kColumns] = {};
  const auto add = [&](std::ptrdiff_t x, const auto& loadRow) __attribute__((always_inline)) {
    Vector column[kColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) column[c] = load(columns + c * call.columnStride + x);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector row = loadRow(rows + r * call.rowStride + x);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sum[r][c] += row * column[c];
    }
  };
  std::ptrdiff_t x = 0;
  for (; x + TACC_LANES <= call.depth; x += TACC_LANES) {
    add(
        x, [](const float* from) __attribute__((always_inline)) { return load(from); });
  }
  if (x < call.depth) {  // what comes behind a row is not to be read
    const PartOfVector part(static_cast<int>(call.depth - x));
    add(
        x, [&](const float* from) __attribute__((always_inline)) { return part.load(from); });
  }
  [&]<int... kTurn>(std::integer_sequence<int, kTurn...>) __attribute__((always_inline)) {
    (deliverSums<kTurn * TACC_LANES>(call, sum, results), ...);
  }
  (std::make_integer_sequence<int, (kRows * kColumns + TACC_LANES - 1) / TACC_LANES>());
}

/// All rows of some columns.
template <int kColumns>
inline void innerColumnsOf(const InnerProductCall& call, const float* columns, float* results) {
  constexpr int kMost = innerRows(kColumns);
  const float* rows = call.rows;
  int left = call.rowCount;
  const auto tile = [&]<int kRows>(std::integral_constant<int, kRows>) __attribute__((always_inline)) {
    innerTile<kRows, kColumns>(call, rows, columns, results);
    rows += kRows * call.rowStride;
    results += kRows * call.resultStride;
    left -= kRows;
  };
  while (left >= kMost) tile(std::integral_constant<int, kMost>());
  if (kMost > 4 && left >= 4) tile(std::integral_constant<int, 4>());
  if (left >= 2) tile(std::integral_constant<int, 2>());
  if (left >= 1) tile(std::integral_constant<int, 1>());
}

/// Columns in parts that are nearly equal.
inline void innerProducts(const InnerProductCall& call) {
  const int parts = (call.columnCount + innerColumns - 1) / innerColumns;
  const float* columns = call.columns;
  float* results = call.results;
  for (int part = 0; part < parts; ++part) {
    const int count = (call.columnCount + parts - 1 - part) / parts;
    switch (count) {
      case 1:
        innerColumnsOf<1>(call, columns, results);
        break;
      case 2:
        innerColumnsOf<2>(call, columns, results);
        break;
      case 3:
        innerColumnsOf<3>(call, columns, results);
        break;
      default:
        innerColumnsOf<innerColumns>(call, columns, results);
        break;
    }
    columns += count * call.columnStride;
    results += count;
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
