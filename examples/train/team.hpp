// What ranks tell each other beside the training: figures, and that they are there.
#pragma once

#include <vector>

#include "errors.hpp"

namespace tacc::train {

/// A communicator of its own, so that it never meets what a strategy does on the other one.
class Team {
 public:
  /// Of this rank alone.
  Team() = default;
  /// Of all ranks of `comm`. Collective.
  explicit Team(taccComm_t comm) {
    check(taccCommUserRank(comm, &rank_));
    check(taccCommCount(comm, &ranks_));
    check(taccCommSplit(comm, 0, rank_, &comm_, nullptr));
  }
  ~Team() {
    if (comm_ != nullptr) taccCommDestroy(comm_);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Each number becomes the sum over all ranks; `op` taccMax: the largest.
  void combine(std::vector<double>& numbers, taccRedOp_t op = taccSum) const {
    if (comm_ != nullptr)
      check(taccAllReduce(numbers.data(), numbers.data(), numbers.size(), taccDouble, op, comm_, nullptr));
  }
  /// Returns when all have come.
  void meet() const {
    if (comm_ != nullptr) check(taccBarrier(comm_, nullptr));
  }

 private:
  taccComm_t comm_ = nullptr;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace tacc::train
