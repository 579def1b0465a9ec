// Slow hosts hang on chains of the others.
//
//   A ring, halving or a chain sends and receives 1.5 to 2 N over every link, also over one that carries much less than
//   the others. Here ranks whose own links are narrow send N and receive N, the least there can be.
//
//   The others are chains that hang together as in group_chains, or one chain of all, where no groups are known. Each
//   narrow rank hangs on a rank of its group's chain, one after the other on those that have the fewest neighbours; a
//   group in which hardly anybody else is belongs to the next one. Groups of 4 and 4 (0-3, 4-7), and 5 is narrow:
//
//        0 - 1 - [2] - 3 - 4 - 6 - 7 - 5                                        [2]: the root
//
//   and no groups, 0, 3, 4 and 5 are narrow:
//
//        0 - 1 - 2 - [6] - 7 - 3
//                |    |
//                4    5
//
//   allreduce: B = 8 blocks go up this tree behind one another, added to each rank's own, and come back down it.
//
//   Steps: twice the longest way to the root. Bytes: a narrow rank N each way; no other more than 2 N, and N more for
//   each narrow rank on it, unless it is at the end of a chain.
//
//   Our own, as group_chains.
#include <algorithm>
#include <utility>

#include "algorithms/catalogue.hpp"
#include "algorithms/chain_tree.hpp"

namespace tacc {
namespace {

/// Narrow ranks for each of the others.
constexpr std::size_t mostLeaves = 2;

/// With the narrow ranks as leaves. What has too few others belongs to the group after it, the last one to that before.
std::vector<ChainGroup> groupsWithLeaves(const PlanRequest& request) {
  std::vector<ChainGroup> groups;
  const auto isComplete = [](const ChainGroup& group) {
    return group.leaves.size() <= mostLeaves * group.chain.size();
  };
  for (const ChainGroup& all : chainGroupsOf(request)) {
    if (groups.empty() || isComplete(groups.back())) groups.emplace_back();
    for (const int rank : all.chain)
      (std::ranges::binary_search(request.narrow, rank) ? groups.back().leaves : groups.back().chain).push_back(rank);
  }
  if (groups.size() < 2 || isComplete(groups.back())) return groups;
  const ChainGroup last = std::move(groups.back());
  groups.pop_back();
  groups.back().chain.insert(groups.back().chain.end(), last.chain.begin(), last.chain.end());
  groups.back().leaves.insert(groups.back().leaves.end(), last.leaves.begin(), last.leaves.end());
  return groups;
}

Tree treeOf(const PlanRequest& request) { return chainTree(groupsWithLeaves(request), request.ranks); }

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && request.collective == Collective::allReduce && !request.narrow.empty() &&
         narrowFit(request) && groupsFit(request) &&
         request.narrow.size() <= mostLeaves * (static_cast<std::size_t>(request.ranks) - request.narrow.size());
}

void write(const PlanRequest& request, PlanWriter& writer) { writeUpAndDown(treeOf(request), writer); }

Exchanges exchanges(const PlanRequest& request) { return exchangesUpAndDown(treeOf(request)); }

}  // namespace

constinit const Algorithm narrowLeavesAlgorithm = {
    "narrow_leaves",
    "Chains of the ranks with wide links, on which those with narrow ones hang: slow hosts, for large data.",
    "Our own, as group_chains",
    serves,
    write,
    exchanges,
    true};

}  // namespace tacc
