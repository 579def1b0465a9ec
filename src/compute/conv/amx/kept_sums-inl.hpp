// Products of bfloat16 for 2 x 2 tiles of sums, which stay in the tiles until the next call: there they are stored, one
// each before the tile is cleared for its first product. Four stores one after the other take 30 to 60 cycles that
// nothing hides, and a step of products 64. What was stored is delivered behind the products of the first two steps.
// Included by the kernels for AMX only.
#pragma once

#include "compute/conv/amx/deliver-inl.hpp"
#include "compute/conv/amx/rows-inl.hpp"
#include "compute/conv/amx/tiles-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

template <int kTile, bool kStores>
[[gnu::always_inline]] inline void renewTile(float* sums) {
  if constexpr (kStores) storeTile<kTile>(sums + kTile * tileFloats);
  clearTile<kTile>();
}

/// The first step of a sum, behind whose products the sums before are stored.
template <bool kStores>
[[gnu::always_inline]] inline void firstStep(const ProductCall& call, float* sums) {
  const std::byte* const a = call.a + call.aSteps[0];
  loadTile<firstB>(call.b, rowBytes);
  loadTile<firstA>(a, call.aRow);
  renewTile<0, kStores>(sums);
  multiplyTiles<0, firstA, firstB>();
  loadTile<firstB + 1>(call.b + call.bTile, rowBytes);
  renewTile<1, kStores>(sums);
  multiplyTiles<1, firstA, firstB + 1>();
  loadTile<firstA + 1>(a + call.aTile, call.aRow);
  renewTile<2, kStores>(sums);
  multiplyTiles<2, firstA + 1, firstB>();
  renewTile<3, kStores>(sums);
  multiplyTiles<3, firstA + 1, firstB + 1>();
}

template <class Kind>
void multiplyKeeping(const ProductCall& call, const Chores& chores) {
  using Number = typename Kind::Number;
  DeliverWork& before = *chores.deliver;
  if (call.steps == 0) {  // pixels that no tap reaches
    if (chores.areInTiles) storeAll(before.sums);
    clearAll();
    if (chores.splitRows > 0) split<Kind>(*chores.split, chores.splitRows);
    deliver<Number>(before);
    return;
  }
  const int splits = (chores.splitRows + call.steps - 1) / call.steps;
  int splitRows = chores.splitRows;
  if (chores.areInTiles) {
    firstStep<true>(call, before.sums);
  } else {
    firstStep<false>(call, nullptr);
  }
  const std::byte* b = call.b + call.bStep;
  const std::byte* fetch = call.b + call.fetchAt;
  for (int step = 0;;) {
    if (step < 2) deliverSome<Number>(before, tileRows);
    for (int line = 0; line < call.fetchLines; ++line, fetch += rowBytes) __builtin_prefetch(fetch, 0, 2);
    const std::byte* row = call.rowsAhead + step * rowBytes;
    for (int i = 0; i < call.rowsAheadCount; ++i, row += call.aRow) __builtin_prefetch(row, 0, 2);
    if (splitRows > 0) {
      split<Kind>(*chores.split, splits);
      splitRows -= splits;
    }
    if (++step == call.steps) break;
    const std::byte* const a = call.a + call.aSteps[step];
    loadTile<firstB>(b, rowBytes);
    loadTile<firstB + 1>(b + call.bTile, rowBytes);
    loadTile<firstA>(a, call.aRow);
    multiplyTiles<0, firstA, firstB>();
    multiplyTiles<1, firstA, firstB + 1>();
    loadTile<firstA + 1>(a + call.aTile, call.aRow);
    multiplyTiles<2, firstA + 1, firstB>();
    multiplyTiles<3, firstA + 1, firstB + 1>();
    b += call.bStep;
  }
  deliver<Number>(before);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
