// What every rank knows of the others' progress at each round of a plan.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/plan_analysis.hpp"

namespace tacc {

/// known(a, i, b): the last round that b has certainly finished when a begins to work in round i; -1: none. A rank
/// learns of others by the messages that it receives, and of everything that their senders knew.
class HappensBefore {
 public:
  /// Whether the receiver of a message does not wait for the round that sends it, but for those before that. Empty: of
  /// none.
  using IsEarly = std::function<bool(const PlanAnalysis::Message&)>;

  HappensBefore(const Plan& plan, const PlanAnalysis& analysis, const IsEarly& isEarly = {});
  int known(int rank, int round, int other) const { return table_[index(rank, round, other)]; }

 private:
  std::size_t index(int rank, int round, int other) const {
    return (static_cast<std::size_t>(round) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)) *
               static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(other);
  }
  int ranks_;
  std::vector<int> table_;
};

}  // namespace tacc
