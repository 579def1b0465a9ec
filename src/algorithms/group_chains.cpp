// Chains along groups that differ: every group is a line of its ranks, and hangs on a larger one.
//
//   Groups of unequal size mostly have unequal uplinks. A plan that treats them alike, as one leader each in a
//   circulant graph, sends 4/3 N or more over the narrowest; here a group on which nothing hangs sends N and receives
//   N.
//
//   The groups of the outermost level, the largest first, each join the placed group for which the lines that reach it,
//   divided by its ranks, stay the fewest. A group is a chain of its ranks in order; its first rank holds on to the
//   other group, and what hangs on it does so at its last rank, then at the ranks before that. Groups of 5, 2, 1 (0-4,
//   5-6, 7):
//
//        0 - 1 - 2 - 3 - 4 - 5 - 6        the largest is held at its first rank too: by the second that hangs on it
//        |
//        7                                the root is the rank in the middle of the largest group: 2
//
//   allreduce: B = 8 blocks go up this tree behind one another, added to each rank's own, and come back down it.
//
//   Steps: twice the longest way to the root. Bytes: no rank in a chain sends or receives more than 2 N but for those
//   where more than one group hangs; of a group's uplink N each way for each line that reaches it.
//
//   The tree is our own; pipelined chains: P. Sanders et al.: Sequential and Parallel Algorithms and Data Structures:
//   The Basic Toolbox, section 13.1.1.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <utility>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/tree.hpp"

namespace tacc {
namespace {

constexpr int blocks = 8;

struct ChainGroup {
  int first, size;
  int lines = 0;  // that reach it
};

/// The rank of a group at which the next line ends.
int endOf(const ChainGroup& group, bool isLargest) {
  // The largest hangs on nothing, so both its ends are free.
  if (group.lines == 1 && isLargest) return group.first;
  const int inner = isLargest ? std::max(0, group.lines - 1) : group.lines - 1;
  return group.first + group.size - 1 - inner % group.size;
}

Tree treeOf(const PlanRequest& request) {
  std::vector<ChainGroup> groups;
  for (int first = 0; const int size : request.groups.back()) {
    groups.push_back({first, size});
    first += size;
  }
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t g) { return groups[g].size; });
  std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(request.ranks));
  const auto join = [&](int a, int b) {
    neighbours[static_cast<std::size_t>(a)].push_back(b);
    neighbours[static_cast<std::size_t>(b)].push_back(a);
  };
  for (const ChainGroup& group : groups)
    for (int r = group.first; r + 1 < group.first + group.size; ++r) join(r, r + 1);
  // Those that are placed, the one first that the next group joins: by how crowded it would be, then by its turn.
  using Place = std::pair<double, std::size_t>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> placed;
  const auto place = [&](std::size_t turn) {
    const ChainGroup& group = groups[order[turn]];
    placed.emplace(static_cast<double>(group.lines + 1) / group.size, turn);
  };
  place(0);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t best = placed.top().second;
    placed.pop();
    join(groups[order[i]].first, endOf(groups[order[best]], best == 0));
    ++groups[order[best]].lines;
    ++groups[order[i]].lines;
    place(best);
    place(i);
  }
  const int root = groups[order.front()].first + groups[order.front()].size / 2;
  std::vector<int> parents(static_cast<std::size_t>(request.ranks), -1), reached = {root};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int next : neighbours[static_cast<std::size_t>(reached[i])]) {
      if (next == parents[static_cast<std::size_t>(reached[i])]) continue;
      parents[static_cast<std::size_t>(next)] = reached[i];
      reached.push_back(next);
    }
  }
  return {parents, root};
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && request.collective == Collective::allReduce && !request.groups.empty() &&
         groupsFit(request);
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const Tree tree = treeOf(request);
  const int turn = tree.node(tree.root()).height;
  const TreeNode& node = tree.node(writer.rank());
  const bool isRoot = node.parent < 0;
  writer.cutInto(blocks);
  for (int b = 0; b < blocks; ++b) {
    std::vector<Operand> sources = {input(b)}, below = {output(b)};
    for (const int child : node.children) {
      sources.push_back(peer(child));
      below.push_back(peer(child));
    }
    if (isRoot) {
      writer.step(turn + b, b, 1, sources, below, Sum::complete);
      continue;
    }
    writer.step(node.height + b, b, 1, sources, {peer(node.parent)});
    writer.step(turn + node.depth + b, b, 1, {peer(node.parent)}, below);
  }
}

Exchanges exchanges(const PlanRequest& request) {
  TreeExchange trees;
  trees.trees = {{std::make_shared<const Tree>(treeOf(request))}};
  trees.turns = trees.combines = true;
  trees.messages = blocks;
  return {blocks, {trees}};
}

}  // namespace

constinit const Algorithm groupChainsAlgorithm = {
    "group_chains",
    "Every group a chain that hangs on a larger one: unequal groups behind unequal uplinks, for large data.",
    "Our own; chains: Sanders et al.: Sequential and Parallel Algorithms and Data Structures, section 13.1.1",
    serves,
    write,
    exchanges,
    true};

}  // namespace tacc
