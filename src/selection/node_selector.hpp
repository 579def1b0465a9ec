// Chooses how a call inside a host runs: the least price on the host's tiers. A pure function of values that are equal
// on all ranks, so all choose alike.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/registry.hpp"
#include "selection/cost/node_cost.hpp"
#include "selection/cost/node_machine.hpp"

namespace tacc {

/// Groups that plans inside a host are told of.
struct NodeLayout {
  std::vector<std::vector<int>> groups;  // as PlanRequest::groups, over places; empty: none
  std::string name;                      // "numa", or "cache, numa"; of those without groups empty
};

struct NodeCandidate {
  const Algorithm* algorithm = nullptr;  // null: the eager route
  int layout = 0;                        // number of its NodeLayout; 0: without groups
  bool isPossible = false;               // it serves the request
  NodeCost cost;
  std::string reason;  // one phrase: why it comes before the others, or why not
};

/// What a call inside a host is, for its price.
struct NodeQuestion {
  Collective collective = Collective::allReduce;
  int root = 0;            // a place
  std::size_t bytes = 0;   // of the call's `count` elements
  bool isDirect = false;   // all ranks reach each other's buffers; else what they send is staged
  std::size_t posted = 0;  // bytes that a rank would post in the eager route, where that is possible; else 0
};

class NodeSelector {
 public:
  /// `arenaBytes`: of one rank.
  NodeSelector(NodeMachine machine, std::size_t arenaBytes, bool isOversubscribed);

  const NodeMachine& machine() const noexcept { return machine_; }
  const std::vector<NodeLayout>& layouts() const noexcept { return layouts_; }
  /// What a plan with that layout is asked for; ranks are places. Kept: the second time it costs a look-up.
  const PlanRequest& request(Collective collective, int root, int layout) const;

  /// The chosen one first: the rule where ranks read each other's memory and nothing is known (the eager route where
  /// that is possible, else Algorithm::suitsSharedMemory), unless another's price is a tenth below its, as closer than
  /// that the model cannot tell. Where ranks stand in several groups that may be any; where they stand alike it is the
  /// plan of the rule in place of the eager route, if each rank has a core. Then the others by price, and those that do
  /// not serve. Sizes are told apart by four classes a power of two, priced at the least of a class. Cost of the first
  /// question of a class: that of writing and playing every plan; then a look-up.
  const std::vector<NodeCandidate>& explain(const NodeQuestion& question);
  const NodeCandidate& choose(const NodeQuestion& question) { return explain(question).front(); }
  /// Whether a call that may go the eager route does: what choose() says. Cost where ranks stand alike: the first time
  /// that of one plan.
  bool goesEager(const NodeQuestion& question);
  /// The layout with which an algorithm is the fastest, for one that is forced.
  int bestLayout(const NodeQuestion& question, const Algorithm& algorithm);

 private:
  NodeCandidate price(const NodeQuestion& question, const Algorithm& algorithm, int layout) const;
  std::vector<NodeCandidate> priceAll(const NodeQuestion& question) const;
  /// Where ranks stand alike there is one question, whether a rank that gets a sum reads all posts, or each rank its
  /// part of them: the more ranks with a core each, the shorter the posts for which parts are faster.
  bool mayReadParts(Collective collective) const noexcept;
  NodeCandidate priceEagerRoute(const NodeQuestion& question) const;

  NodeMachine machine_;
  std::size_t arenaBytes_;
  bool isOversubscribed_;
  std::vector<NodeLayout> layouts_;
  mutable std::map<std::tuple<Collective, int, int>, PlanRequest> requests_;
  std::map<std::tuple<Collective, int, std::size_t, bool, bool>, std::vector<NodeCandidate>> candidates_;
  std::map<std::pair<Collective, std::size_t>, bool> goesEager_;  // where ranks stand alike
};

/// Lines of text, a candidate each, the chosen one with an arrow.
std::string describeCandidates(const std::vector<NodeCandidate>& candidates, const std::vector<NodeLayout>& layouts);

}  // namespace tacc
