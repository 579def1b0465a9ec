// Products of bfloat16 for 2 x 2 or 4 x 1 tiles of sums, which stay in the tiles until the next call: there they are
// stored, one each before the tile is cleared for its first product. Four stores one after the other take 30 to 60
// cycles that nothing hides, and a step of products 64. What was stored is delivered behind the products of the first
// two steps. Included by the kernels for AMX only.
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

/// What a step adds to the sums; of the first one, behind whose products the sums before are stored or not.
enum class KeptStep { first, firstStoring, later };

template <int kTile, KeptStep kStep, int kA, int kB>
[[gnu::always_inline]] inline void multiplyKept(float* sums) {
  if constexpr (kStep != KeptStep::later) renewTile<kTile, kStep == KeptStep::firstStoring>(sums);
  multiplyTiles<kTile, kA, kB>();
}

template <int kColumns, KeptStep kStep>
[[gnu::always_inline]] inline void keptStep(const ProductCall& call, const std::byte* a, const std::byte* b,
                                            float* sums) {
  loadTile<firstB>(b, rowBytes);
  loadTile<firstA>(a, call.aRow);
  multiplyKept<0, kStep, firstA, firstB>(sums);
  if constexpr (kColumns == 2) {
    loadTile<firstB + 1>(b + call.bTile, rowBytes);
    multiplyKept<1, kStep, firstA, firstB + 1>(sums);
    loadTile<firstA + 1>(a + call.aTile, call.aRow);
    multiplyKept<2, kStep, firstA + 1, firstB>(sums);
    multiplyKept<3, kStep, firstA + 1, firstB + 1>(sums);
  } else {
    loadTile<firstA + 1>(a + call.aTile, call.aRow);
    multiplyKept<1, kStep, firstA + 1, firstB>(sums);
    loadTile<firstA>(a + 2 * call.aTile, call.aRow);
    multiplyKept<2, kStep, firstA, firstB>(sums);
    loadTile<firstA + 1>(a + 3 * call.aTile, call.aRow);
    multiplyKept<3, kStep, firstA + 1, firstB>(sums);
  }
}

template <class Kind, int kColumns>
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
    keptStep<kColumns, KeptStep::firstStoring>(call, call.a + call.aSteps[0], call.b, before.sums);
  } else {
    keptStep<kColumns, KeptStep::first>(call, call.a + call.aSteps[0], call.b, nullptr);
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
    keptStep<kColumns, KeptStep::later>(call, call.a + call.aSteps[step], b, nullptr);
    b += call.bStep;
  }
  deliver<Number>(before);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
