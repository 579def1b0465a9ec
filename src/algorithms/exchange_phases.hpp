// Reduce-scatter and allgather of a part of a vector among a few of the ranks: what hierarchical plans are made of.
#pragma once

#include <vector>

#include "algorithms/plan_writer.hpp"

namespace tacc {

/// Member i of `ranks` looks after blocks [first + i * width, first + (i + 1) * width).
struct PhaseShape {
  std::vector<int> ranks;
  int first = 0;
  int width = 1;
};

/// In every phase steps begin in round `start`; the phase after it may begin in the round that is returned. A phase of
/// one member is empty. `fromOutput`: what is added lies in the output already, else in the input.
struct ExchangePhases {
  /// After it, member i has the sums of its blocks in its output.
  int (*reduceScatter)(PlanWriter&, const PhaseShape&, bool fromOutput, int start);
  /// From each member's blocks in its output to all blocks in all outputs.
  int (*allGather)(PlanWriter&, const PhaseShape&, int start);
};

extern const ExchangePhases ringPhases;       // as ring.cpp: n - 1 steps each, n rounds
extern const ExchangePhases circulantPhases;  // as circulant.cpp: ceil(lg n) steps each, twice as many rounds

}  // namespace tacc
