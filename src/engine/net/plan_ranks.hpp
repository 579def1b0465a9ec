// How plans number the ranks of a communicator over several hosts.
//
// Most go host by host, in the order of the topology, whatever numbers the ranks have: then groups are ranges, and a
// ring crosses each uplink once each way. What is combined in the order of the ranks takes them as they are numbered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace tacc {

enum class PlanOrder : std::uint8_t { hosts, ranks };

class PlanRanks {
 public:
  /// `byHost`: all ranks, host by host; `rank`: this one.
  PlanRanks(std::vector<int> byHost, int rank)
      : byHost_(std::move(byHost)),
        asNumbered_(byHost_.size()),
        places_(byHost_.size()),
        rank_(rank),
        isSorted_(std::ranges::is_sorted(byHost_)) {
    std::iota(asNumbered_.begin(), asNumbered_.end(), 0);
    for (const int place : asNumbered_) places_[at(byHost_[at(place)])] = place;
  }

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(byHost_.size()); }
  /// The communicator's rank of every rank of a plan.
  const std::vector<int>& members(PlanOrder order) const noexcept {
    return order == PlanOrder::hosts ? byHost_ : asNumbered_;
  }
  /// The plan's rank of a rank of the communicator.
  int numberOf(int rank, PlanOrder order) const noexcept {
    return order == PlanOrder::hosts ? places_[at(rank)] : rank;
  }
  int own(PlanOrder order) const noexcept { return numberOf(rank_, order); }
  /// Whether plans of this order number ranks in another way than the communicator does.
  bool renumbers(PlanOrder order) const noexcept { return order == PlanOrder::hosts && !isSorted_; }

 private:
  std::vector<int> byHost_, asNumbered_;
  std::vector<int> places_;  // in byHost_, by rank
  int rank_;
  bool isSorted_;
};

}  // namespace tacc
