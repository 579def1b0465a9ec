// The part of a described machine that a simulated job gets, and how tacc sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay.hpp"
#include "selection/network_selector.hpp"

namespace tacc::sim {

/// block: hosts in the order of the topology, as tacc itself numbers their ranks. cyclic: dealt round over the
/// outermost groups. random: shuffled, always alike.
enum class Place : std::uint8_t { block, cyclic, random };

class Machine {
 public:
  /// `ranks` ranks, `ranksPerHost` on each of the first hosts of the topology, fewer on the last; where it has no more
  /// hosts, as many ranks as go there. `fallback` stands for what the topology does not say.
  Machine(Topology topology, int ranks, Place place, const NetworkSpeed& fallback, int ranksPerHost = 1);

  const Topology& topology() const noexcept { return topology_; }
  int ranks() const noexcept { return static_cast<int>(hosts_.size()); }
  int ranksPerHost() const noexcept { return ranksPerHost_; }
  /// What a communicator would measure: from each host to the next, all at once.
  const NetworkSpeed& speed() const noexcept { return speed_; }
  /// Chooses as a communicator of these hosts does, which has put them in the order of the topology.
  NetworkSelector& selector() noexcept { return selector_; }
  Stage stage() const;
  /// Levels that messages of these hosts can cross, from the inside.
  std::vector<int> levels() const;

  /// How the library cuts a call (engine/net/chunking.hpp). `blocks`: of the plan.
  CostCall cut(Collective collective, double bytes, int blocks) const;

 private:
  Topology topology_;
  NetworkSpeed fallback_;
  int ranksPerHost_;
  std::vector<std::uint32_t> hosts_;  // by rank; the ranks of one host follow one another
  NetworkSpeed speed_;
  NetworkSelector selector_;
};

}  // namespace tacc::sim
