// Chooses the algorithm of the part of a call that is between hosts: the fastest by the cost model of the agreed
// topology and speed. All ranks give it the same values and choose alike.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "algorithms/plan_demands.hpp"
#include "algorithms/registry.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/network_speed.hpp"
#include "selection/network_prices.hpp"
#include "selection/part_prices.hpp"
#include "selection/price_board.hpp"
#include "topology/model/topology.hpp"

namespace tacc {

/// The machine that the cost model sees: `hosts[n]` is host n's name in the order of the plans' ranks, or, for hosts
/// that the topology does not know, any name; `ranksOf[n]` ranks of each take part. What the topology does not
/// say is taken from `speed`.
CostMachine costMachineOf(const Topology& topology, const std::vector<std::string>& hosts,
                          const std::vector<int>& ranksOf, const NetworkSpeed& speed);

/// Makes a machine with hosts of several ranks one whose ranks meet in their host's memory: what they send each other
/// crosses no link, and all share the host's own. `inside`: the topology's level 0, for what it says of it.
void joinInMemory(CostMachine& machine, const Level& inside);

/// A line for each level, innermost first.
std::string describeMachine(const CostMachine& machine);

/// Groups of the machine's levels, for plans that look at them: those between single ranks and the whole.
std::vector<std::vector<int>> groupsOf(const CostMachine& machine);

/// Sides of the torus whose places the ranks fill in order, for plans that look at it: the last one for ranks at one
/// place, if there are several. Empty: no torus, or ranks that do not fill a box of it.
std::vector<int> dimensionsOf(const CostMachine& machine);

/// Ranks whose ports are much narrower than those of half of the ranks, for plans that look at them.
std::vector<int> narrowOf(const CostMachine& machine);

class NetworkSelector {
 public:
  /// `board`: shared with ranks whose selectors are made alike; for prices that take long to find.
  explicit NetworkSelector(CostMachine machine, PriceBoard board = {});

  const CostMachine& machine() const noexcept { return map_.machine(); }
  int ranks() const noexcept { return map_.ranks(); }
  const std::vector<std::vector<int>>& groups() const noexcept { return groups_; }

  /// What a plan between these ranks is asked for.
  PlanRequest request(Collective collective, int root) const {
    return {collective, map_.ranks(), root, groups_, dimensions_, narrow_};
  }

  /// Into messages of how many bytes a call is cut; `bytes` as below. As long as suits the links; shorter where the
  /// call is so short that its first and last messages are much of it.
  std::size_t messageBytes(Collective collective, std::size_t bytes) const;

  /// Calls from this root are priced for all that it stands for: itself, or of many ranks its group. 0 where the
  /// collective has none.
  int pricedRoot(Collective collective, int root) const;

  /// `bytes`: split: of the vector; stack: of one block. Sizes are told apart by five classes a power of two. A forced
  /// algorithm that cannot serve the request, or does not meet the demands, is an Error (taccInvalidUsage) that lists
  /// those that do.
  const Algorithm& choose(Collective collective, int root, std::size_t bytes, std::string_view forced,
                          const PlanDemands& demands = {});

  /// All candidates, the chosen one first.
  const std::vector<NetworkCandidate>& explain(Collective collective, int root, std::size_t bytes);

  /// What the two parts of an allreduce would take whose sums and results travel in different widths. nullopt: it would
  /// take too long to find.
  std::optional<PartPrices> explainParts(const Algorithm& algorithm, std::size_t sumBytes,
                                         std::size_t resultBytes) const;

 private:
  /// How often messages of `most` bytes are halved for calls of a size at which a class is priced.
  int halvingsOf(Collective collective, std::size_t priced, std::size_t most) const;
  std::vector<NetworkCandidate> find(Collective collective, int root, std::size_t priced) const;
  bool meetsDemands(const Algorithm& algorithm, Collective collective, int root, const PlanDemands& demands);

  CostMap map_;
  double rate_;  // bytes per second of a stream, by which calls are cut
  std::vector<std::vector<int>> groups_;
  std::vector<int> dimensions_, narrow_;
  mutable std::map<std::tuple<Collective, std::size_t, std::size_t>, int> halvings_;  // as far as they were asked for
  std::map<std::tuple<Collective, int, std::size_t>, std::vector<NetworkCandidate>>
      candidates_;  // by the root and the size at which a class is priced
  std::map<std::tuple<const Algorithm*, Collective, int, PlanDemands>, bool> met_;  // as far as they were asked for
  PriceBoard board_;
};

}  // namespace tacc
