// Reduce-scatter and allgather of a part of a vector among a few of the ranks: what hierarchical plans are made of.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

/// Member i of `ranks` looks after blocks [starts[i], starts[i + 1]). Member `self` is the writer's rank.
struct PhaseShape {
  std::vector<int> ranks;
  int self = 0;
  std::vector<int> starts;
  Operand (*held)(int block) = output;  // where sums, and what is gathered, lie
};

/// `n` shares of `width` blocks each.
std::vector<int> evenStarts(int first, int width, int n);

/// The team of every rank, and who is at a distance in it. Ranks without a team take no part.
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
/// of one member. `isHeld`: what is added lies where sums do already, else in the input. `sum`: of the results.
struct ExchangePhases {
  int (*rounds)(int n);
  /// After it, member i holds the sums of its blocks.
  void (*reduceScatter)(PlanWriter&, const PhaseShape&, bool isHeld, int start, Sum sum);
  /// From each member's own blocks to all blocks everywhere.
  void (*allGather)(PlanWriter&, const PhaseShape&, int start);
  /// What they exchange in all `teams` at once, teams of one size, `width` blocks a member.
  std::vector<Exchange> (*exchanges)(const std::shared_ptr<const Teams>& teams, int width, bool combines);
};

/// Teams of any sizes, and of any shares for their members. A rank is in one at most.
class UnevenTeams {
 public:
  struct Team {
    std::vector<int> ranks;
    std::vector<int> starts;  // as in PhaseShape
  };
  explicit UnevenTeams(int ranks) : teamOf_(static_cast<std::size_t>(ranks), -1), placeOf_(teamOf_.size(), 0) {}
  void add(Team team);

  const std::vector<Team>& teams() const noexcept { return teams_; }
  /// The team of a rank; null: it has none.
  const Team* teamOf(int rank) const {
    const int team = teamOf_[static_cast<std::size_t>(rank)];
    return team < 0 ? nullptr : &teams_[static_cast<std::size_t>(team)];
  }
  int placeOf(int rank) const { return placeOf_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Team> teams_;
  std::vector<int> teamOf_, placeOf_;
};

/// What circulantPhases exchange in all of them at once, message after message of a rank.
std::vector<Exchange> circulantExchanges(const std::shared_ptr<const UnevenTeams>& teams, bool combines);

extern const ExchangePhases ringPhases;       // as ring.cpp: n - 1 steps each, n rounds
extern const ExchangePhases circulantPhases;  // as circulant.cpp: ceil(lg n) steps each, twice as many rounds

}  // namespace tacc
