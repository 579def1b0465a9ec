// A tree of chains: groups of ranks, each a line that hangs on a larger one; and the allreduce up and down it.
#pragma once

#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/tree.hpp"

namespace tacc {

struct ChainGroup {
  std::vector<int> chain;        // at least one rank
  std::vector<int> leaves = {};  // each hangs on a rank of the chain, where the fewest do
};

/// The groups of the request's outermost level, or one of all ranks; without leaves.
std::vector<ChainGroup> chainGroupsOf(const PlanRequest& request);

/// Groups, those with the longest chains first, each join the placed one for which the lines that reach it, divided by
/// its chain's ranks, stay the fewest. The root is in the middle of the longest.
Tree chainTree(std::vector<ChainGroup> groups, int ranks);

/// The part of the writer's rank in an allreduce: blocks go up the tree behind one another, and come back down it.
void writeUpAndDown(const Tree& tree, PlanWriter& writer);
Exchanges exchangesUpAndDown(Tree tree);

}  // namespace tacc
