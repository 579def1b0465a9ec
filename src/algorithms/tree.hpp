// Trees over the ranks, and the collectives that run on any of them.
//
//   A tree has places 0 .. p-1. What lies below a place is an interval of places that contains it, so a subtree's
//   blocks are one range of a stack, and partial results are combined in the order of places. The root of the
//   collective has the tree's root place; ranks follow from there in order, modulo p.
//
//   broadcast   every rank passes on what comes from its parent, first to the child with most below it.
//   reduce      every rank adds its own and its children's partial results in the order of places, in one pass, and
//               forwards the sum to its parent. Nothing is stored.
//   allreduce   reduce to rank 0, whose last step is the first of the broadcast.
//   gather      stacks of blocks grow towards the root. A rank with children keeps its subtree's blocks in scratch, in
//               the order of places. Only the root's buffer is in the order of ranks: messages to and from the root are
//               cut in two where the rank number wraps.
//   scatter     the same backwards.
//   allgather   gather to rank 0, in everybody's output instead of scratch, then broadcast of the whole stack.
//   reduce-scatter  reduce of the whole stack to rank 0, then scatter. For these two the root is rank 0 at place 0.
#pragma once

#include <vector>

#include "algorithms/plan_writer.hpp"

namespace tacc {

struct TreeNode {
  int parent = -1;
  std::vector<int> children;  // in the order of places
  int first = 0, last = 0;    // places below it and itself: first .. last
  int depth = 0;              // steps from the root
  int height = 0;             // steps from the lowest leaf
  int size = 1;               // places below it and itself
};

class Tree {
 public:
  /// `parents[place]`, -1 at the root. Whatever is below a place must be an interval, unless neither gather nor scatter
  /// is asked for. `rank`: of the root place.
  Tree(const std::vector<int>& parents, int rank);

  int size() const noexcept { return static_cast<int>(nodes_.size()); }
  int root() const noexcept { return root_; }
  const TreeNode& node(int place) const { return nodes_[static_cast<std::size_t>(place)]; }
  int rankOf(int place) const noexcept;
  int placeOf(int rank) const noexcept;

 private:
  void measure();

  std::vector<TreeNode> nodes_;
  int root_ = 0;
  int rank_;
};

/// The part of the writer's rank in any collective but alltoall on a tree.
void writeOnTree(const PlanRequest& request, const Tree& tree, PlanWriter& writer);
/// Whether writeOnTree() knows the collective.
bool isServedByTrees(Collective collective) noexcept;

}  // namespace tacc
