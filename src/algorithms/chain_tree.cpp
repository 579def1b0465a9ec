#include "algorithms/chain_tree.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <utility>

namespace tacc {
namespace {

constexpr int blocks = 8;

class Builder {
 public:
  Builder(std::vector<ChainGroup> groups, int ranks)
      : lines_(groups.size()), groups_(std::move(groups)), neighbours_(static_cast<std::size_t>(ranks)) {
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t g) { return groups_[g].chain.size(); });
    for (const ChainGroup& group : groups_)
      for (std::size_t i = 0; i + 1 < group.chain.size(); ++i) join(group.chain[i], group.chain[i + 1]);
    joinGroups(order);
    const std::vector<int>& largest = groups_[order.front()].chain;
    root_ = largest[largest.size() / 2];
    for (ChainGroup& group : groups_) hangLeaves(group);
  }

  Tree tree() const {
    std::vector<int> parents(neighbours_.size(), -1), reached = {root_};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const int next : neighbours_[static_cast<std::size_t>(reached[i])]) {
        if (next == parents[static_cast<std::size_t>(reached[i])]) continue;
        parents[static_cast<std::size_t>(next)] = reached[i];
        reached.push_back(next);
      }
    }
    return {parents, root_};
  }

 private:
  void join(int a, int b) {
    neighbours_[static_cast<std::size_t>(a)].push_back(b);
    neighbours_[static_cast<std::size_t>(b)].push_back(a);
  }

  void joinGroups(const std::vector<std::size_t>& order) {
    // Those that are placed, the one first that the next group joins: by how crowded it would be, then by its turn.
    using Place = std::pair<double, std::size_t>;
    std::priority_queue<Place, std::vector<Place>, std::greater<>> placed;
    const auto place = [&](std::size_t turn) {
      const std::size_t group = order[turn];
      placed.emplace(static_cast<double>(lines_[group] + 1) / static_cast<double>(groups_[group].chain.size()), turn);
    };
    place(0);
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::size_t best = placed.top().second;
      placed.pop();
      join(groups_[order[i]].chain.front(), endOf(order[best], best == 0));
      ++lines_[order[best]];
      ++lines_[order[i]];
      place(best);
      place(i);
    }
  }

  /// The rank of a group at which the next line ends.
  int endOf(std::size_t group, bool isLargest) const {
    const std::vector<int>& chain = groups_[group].chain;
    const std::size_t lines = lines_[group];
    // The largest hangs on nothing, so both its ends are free.
    if (lines == 1 && isLargest) return chain.front();
    const std::size_t inner = isLargest && lines == 0 ? 0 : lines - 1;
    return chain[chain.size() - 1 - inner % chain.size()];
  }

  /// At the ranks of the chain that have the fewest neighbours, one after the other.
  void hangLeaves(ChainGroup& group) {
    std::ranges::stable_sort(group.chain, {}, [&](int r) { return neighbours_[static_cast<std::size_t>(r)].size(); });
    for (std::size_t i = 0; i < group.leaves.size(); ++i) join(group.leaves[i], group.chain[i % group.chain.size()]);
  }

  std::vector<std::size_t> lines_;  // that reach each group
  std::vector<ChainGroup> groups_;
  std::vector<std::vector<int>> neighbours_;
  int root_ = 0;
};

}  // namespace

std::vector<ChainGroup> chainGroupsOf(const PlanRequest& request) {
  std::vector<ChainGroup> groups;
  int rank = 0;
  for (const int size : request.groups.empty() ? std::vector{request.ranks} : request.groups.back()) {
    std::vector<int>& chain = groups.emplace_back().chain;
    for (const int end = rank + size; rank < end; ++rank) chain.push_back(rank);
  }
  return groups;
}

Tree chainTree(std::vector<ChainGroup> groups, int ranks) { return Builder(std::move(groups), ranks).tree(); }

void writeUpAndDown(const Tree& tree, PlanWriter& writer) {
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

Exchanges exchangesUpAndDown(Tree tree) {
  TreeExchange trees;
  trees.trees = {{std::make_shared<const Tree>(std::move(tree))}};
  trees.turns = trees.combines = true;
  trees.messages = blocks;
  return {blocks, {trees}};
}

}  // namespace tacc
