// Reduce-scatter and allgather of a part of a vector among a few of the ranks: what hierarchical plans are made of.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

/// Member i of `ranks` looks after blocks [first + i * width, first + (i + 1) * width). Member `self` is the writer's
/// rank.
struct PhaseShape {
  std::vector<int> ranks;
  int self = 0;
  int first = 0;
  int width = 1;
};

/// Of every rank: its team, and who is at a distance in it. Ranks without a team take no part.
class Teams {
 public:
  Teams(int ranks, const std::vector<std::vector<int>>& teams);
  int size() const noexcept { return size_; }
  int placeOf(int rank) const { return places_[static_cast<std::size_t>(rank)] % size_; }
  /// The rank itself where it takes no part.
  int at(int rank, int distance) const {
    const int place = places_[static_cast<std::size_t>(rank)];
    if (place < 0) return rank;
    return members_[static_cast<std::size_t>(place - place % size_ + wrap(place + distance, size_))];
  }

 private:
  int size_;
  std::vector<int> members_, places_;
};

/// The part of the writer's rank in each phase. Steps begin in round `start`; a phase of n takes rounds(n) rounds, none
/// of one member. `fromOutput`: what is added lies in the output already, else in the input. `sum`: of the results.
struct ExchangePhases {
  int (*rounds)(int n);
  /// After it, member i has the sums of its blocks in its output.
  void (*reduceScatter)(PlanWriter&, const PhaseShape&, bool fromOutput, int start, Sum sum);
  /// From each member's blocks in its output to all blocks in all outputs.
  void (*allGather)(PlanWriter&, const PhaseShape&, int start);
  /// What they exchange in all `teams` at once, teams of one size, `width` blocks a member.
  std::vector<Exchange> (*exchanges)(const std::shared_ptr<const Teams>& teams, int width, bool combines);
};

extern const ExchangePhases ringPhases;       // as ring.cpp: n - 1 steps each, n rounds
extern const ExchangePhases circulantPhases;  // as circulant.cpp: ceil(lg n) steps each, twice as many rounds

}  // namespace tacc
