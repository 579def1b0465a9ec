// Products of rows with panels of columns. Sums of some rows and neighbouring columns stay in registers; a row of
// results is written from its begin to its end, some columns at a time, so that hardware follows what is written: with
// few numbers to a sum, that is most of the time. Included by one file per instruction set, as table-inl.hpp.
#include <type_traits>

#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

inline constexpr int panelRows = 6;

/// Vectors of so many rows whose sums fit into the registers, beside a vector of columns and one number of each row.
constexpr int panelVectors(int rows) {
#if TACC_LANES == 16 || (defined(__aarch64__) && TACC_LANES == 4)
  return rows <= 3 ? 8 : 4;
#else
  return rows == 1 ? 8 : rows <= 3 ? 4 : 2;
#endif
}

/// Of columns that a row of results has side by side.
struct PanelPart {
  const float* columns;
  std::ptrdiff_t columnStride;  // from a number of them to the next
  const float* bias;
  float* results;
};

/// Of a panel, the L1 cache has room for so many numbers of each column, beside rows and results. Of a deeper one what
/// comes next is fetched where few rows multiply it.
inline constexpr int mostNear = 64;

/// `last`: the lanes of the last vector that are columns, where some are not.
template <int kRows, int kVectors, bool kIsWhole>
[[gnu::always_inline]] inline void panelTile(const PanelProductCall& call, const float* rows, const PanelPart& part,
                                             const PartOfVector& last) {
  Vector sum[kRows][kVectors] = {};
  const float* columns = part.columns;
  const bool fetches = call.depth > mostNear;
  const float* later = rows + panelRows * call.rowStride;
  if constexpr (kRows > panelRows) asm("" : "+r"(later));  // the same distances count from here: they stay in registers
  for (int l = 0; l < call.depth; ++l, columns += part.columnStride) {
    if (kRows < kVectors && fetches) {
      constexpr int ahead = 768;  // floats: as long as the second cache takes
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; v += blockLength / TACC_LANES) {
        __builtin_prefetch(columns + ahead + v * TACC_LANES);
      }
    }
    // Of both, the fewer stay in registers.
    if constexpr (kRows < kVectors) {
      Vector factor[kRows];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) factor[r] = broadcast(rows[r * call.rowStride + l]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const Vector column = kRows == 1 ? load(columns + v * TACC_LANES) : inRegister(load(columns + v * TACC_LANES));
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) sum[r][v] += factor[r] * column;
      }
    } else {
      Vector column[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) column[v] = load(columns + v * TACC_LANES);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const float* const row = r < panelRows ? rows : later;
        const Vector factor = broadcast(row[r % panelRows * call.rowStride + l]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sum[r][v] += factor * column[v];
      }
    }
  }
  if (part.bias != nullptr) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Vector bias = load(part.bias + v * TACC_LANES);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sum[r][v] += bias;
    }
  }
  const auto deliver = [&](const auto& finish) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        float* const to = part.results + r * call.resultStride + v * TACC_LANES;
        const bool isCut = !kIsWhole && v == kVectors - 1;
        const Vector result = finish(sum[r][v], to, isCut);
        if (isCut) {
          last.store(to, result);
        } else {
          store(to, result);
        }
      }
    }
  };
  if (!call.adds && !call.relu) {
    return deliver([](Vector result, const float*, bool) __attribute__((always_inline)) { return result; });
  }
  deliver([&](Vector result, const float* to, bool isCut) __attribute__((always_inline)) {
    if (call.adds) result += isCut ? last.load(to) : load(to);
    return call.relu ? maximum(result, Vector{}) : result;
  });
}

/// What is left of a panel: fewer columns than kRows rows have sums of at once.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void panelEnd(const PanelProductCall& call, const float* rows, const PanelPart& part,
                                            int columns) {
  if constexpr (kVectors > 0) {
    if (columns <= (kVectors - 1) * TACC_LANES) return panelEnd<kRows, kVectors - 1>(call, rows, part, columns);
    panelTile<kRows, kVectors, false>(call, rows, part, PartOfVector(columns - (kVectors - 1) * TACC_LANES));
  }
}

/// kRows rows from `row` on and the columns [first, end).
template <int kRows>
[[gnu::always_inline]] inline void panelRowsOf(const PanelProductCall& call, int row, int first, int end) {
  constexpr int kColumns = panelVectors(kRows) * TACC_LANES;
  const float* const rows = call.rows + row * call.rowStride;
  for (int column = first; column < end; column += panelColumns) {
    const int behind = call.columnCount - column;
    const int width = behind < panelColumns ? behind : panelColumns;
    const std::ptrdiff_t stride = (width + blockLength - 1) / blockLength * blockLength;
    PanelPart part{call.panels + std::ptrdiff_t{column} * call.depth, stride,
                   call.bias != nullptr ? call.bias + column : nullptr,
                   call.results + row * call.resultStride + column};
    int left = width;
    for (; left >= kColumns; left -= kColumns) {
      panelTile<kRows, panelVectors(kRows), true>(call, rows, part, PartOfVector());
      part.columns += kColumns;
      part.results += kColumns;
      if (part.bias != nullptr) part.bias += kColumns;
    }
    panelEnd<kRows, panelVectors(kRows)>(call, rows, part, left);
  }
}

/// Groups of kRows rows each, from `row` on.
template <int kRows>
[[gnu::noinline]] void panelGroupsOf(const PanelProductCall& call, int row, int groups, int first, int end) {
  for (; groups > 0; --groups, row += kRows) panelRowsOf<kRows>(call, row, first, end);
}

/// Vectors of a row that are few: more rows are taken at once.
inline constexpr int narrowVectors = panelVectors(panelRows) - 1;
constexpr int narrowRows(int vectors) { return narrowVectors < 3 || vectors == 3 ? 8 : 12; }

/// All rows, of so few columns.
template <int kVectors, bool kIsWhole>
[[gnu::noinline]] void narrowProductsOf(const PanelProductCall& call) {
  const PartOfVector last(call.columnCount - (kVectors - 1) * TACC_LANES);
  const float* rows = call.rows;
  PanelPart part{call.panels, (call.columnCount + blockLength - 1) / blockLength * blockLength, call.bias,
                 call.results};
  int left = call.rowCount;
  const auto take = [&]<int kRows>(std::integral_constant<int, kRows>) __attribute__((always_inline)) {
    panelTile<kRows, kVectors, kIsWhole>(call, rows, part, last);
    rows += kRows * call.rowStride;
    part.results += kRows * call.resultStride;
    left -= kRows;
  };
  constexpr int kMost = narrowRows(kVectors);
  while (left >= kMost) take(std::integral_constant<int, kMost>());
  if (left >= panelRows) take(std::integral_constant<int, panelRows>());
  switch (left) {
    case 1:
      return take(std::integral_constant<int, 1>());
    case 2:
      return take(std::integral_constant<int, 2>());
    case 3:
      return take(std::integral_constant<int, 3>());
    case 4:
      return take(std::integral_constant<int, 4>());
    case 5:
      return take(std::integral_constant<int, 5>());
    default:
      return;
  }
}

template <int kVectors>
inline void narrowProducts(const PanelProductCall& call) {
  if (call.columnCount == kVectors * TACC_LANES) return narrowProductsOf<kVectors, true>(call);
  narrowProductsOf<kVectors, false>(call);
}

/// So many panels at a time as stay in the L1 cache while all rows go over them.
inline void panelProducts(const PanelProductCall& call) {
  if (call.columnCount <= TACC_LANES) return narrowProducts<1>(call);
  if constexpr (narrowVectors == 3) {
    if (call.columnCount <= 2 * TACC_LANES) return narrowProducts<2>(call);
    if (call.columnCount <= 3 * TACC_LANES) return narrowProducts<3>(call);
  }
  const int panelsAtOnce = mostNear * 3 / 4 / call.depth;
  const int columnsAtOnce = (panelsAtOnce < 1 ? 1 : panelsAtOnce) * panelColumns;
  for (int first = 0; first < call.columnCount; first += columnsAtOnce) {
    const int end = call.columnCount - first < columnsAtOnce ? call.columnCount : first + columnsAtOnce;
    // The last rows in two parts that are nearly equal: a single one keeps the arithmetic waiting.
    const int groups = call.rowCount / panelRows, rest = call.rowCount % panelRows;
    const int whole = rest == 0 || groups == 0 ? groups : groups - 1;
    if (whole > 0) panelGroupsOf<panelRows>(call, 0, whole, first, end);
    constexpr decltype(&panelGroupsOf<1>) ofRows[panelRows] = {panelGroupsOf<1>, panelGroupsOf<2>, panelGroupsOf<3>,
                                                               panelGroupsOf<4>, panelGroupsOf<5>, panelGroupsOf<6>};
    for (int row = whole * panelRows; row < call.rowCount;) {
      const int left = call.rowCount - row;
      const int rows = left > panelRows ? (left + 1) / 2 : left;
      ofRows[rows - 1](call, row, 1, first, end);
      row += rows;
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
