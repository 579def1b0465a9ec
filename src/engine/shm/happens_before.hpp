// What every rank knows of the others' progress at each round of a plan.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// A message of the plan: the k-th from `sender` to `receiver`, found at both ends.
struct PlanMessage {
  int sender, sendStep, sendRound;
  int receiver, receiveStep, receiveRound;
};

/// All messages, in order of (sender, receiver, k). The plan must be a proven one.
std::vector<PlanMessage> matchMessages(const Plan& plan);

/// known(a, i, b): the last round that b has certainly finished when a begins to work in round i; -1: none. A rank
/// learns of others by the messages that it receives, and of everything that their senders knew.
class HappensBefore {
 public:
  HappensBefore(const Plan& plan, const std::vector<PlanMessage>& messages);
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
