#include "algorithms/tree.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "core/error.hpp"

namespace tacc {

Tree::Tree(const std::vector<int>& parents, int rank) : nodes_(parents.size()), rank_(rank) {
  for (int place = 0; place < size(); ++place) {
    const int parent = parents[static_cast<std::size_t>(place)];
    nodes_[place].parent = parent;
    if (parent >= 0) {
      nodes_[parent].children.push_back(place);
    } else {
      root_ = place;
    }
  }
  measure();
}

int Tree::rankOf(int place) const noexcept { return wrap(rank_ + place - root_, size()); }

int Tree::placeOf(int rank) const noexcept { return wrap(rank - rank_ + root_, size()); }

void Tree::measure() {
  std::vector<int> order = {root_};  // parents before their children
  order.reserve(nodes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    TreeNode& node = nodes_[order[i]];
    node.first = node.last = order[i];
    for (const int child : node.children) {
      nodes_[child].depth = node.depth + 1;
      order.push_back(child);
    }
  }
  for (std::size_t i = order.size(); i-- > 1;) {
    const TreeNode& child = nodes_[order[i]];
    TreeNode& parent = nodes_[child.parent];
    parent.first = std::min(parent.first, child.first);
    parent.last = std::max(parent.last, child.last);
    parent.size += child.size;
    parent.height = std::max(parent.height, child.height + 1);
  }
}

namespace {

/// A subtree's blocks, or those that one message carries, counted from the subtree's first place.
struct Piece {
  int offset;
  int count;
};

/// The part of one place.
class TreeWriter {
 public:
  TreeWriter(PlanWriter& writer, const Tree& tree)
      : writer_(writer),
        tree_(tree),
        rank_(writer.rank()),
        v_(tree.placeOf(rank_)),
        node_(tree.node(v_)),
        isRoot_(v_ == tree.root()) {}

  void broadcast() {
    if (isRoot_) return writer_.step(0, 0, 1, {input(0)}, outputAndChildren());
    receiveAndPassOn(0);
  }

  void reduce() { reduceUp({output(0)}); }

  void allReduce() {
    reduceUp(outputAndChildren());
    if (!isRoot_) receiveAndPassOn(tree_.node(tree_.root()).height);
  }

  void gather() {
    if (isLeaf()) return writer_.step(0, 0, 1, {input(0)}, {parent()});
    writer_.step(0, 0, 1, {input(0)}, {isRoot_ ? output(rank_) : scratch(v_ - node_.first)});
    for (const int child : node_.children) {
      // A leaf sends in round 0, others in twice their height.
      const int round = 2 * tree_.node(child).height + 1;
      for (const Piece& piece : piecesOf(child)) {
        const int place = tree_.node(child).first + piece.offset;
        writer_.step(round, 0, piece.count, {peer(tree_.rankOf(child))},
                     {isRoot_ ? output(tree_.rankOf(place)) : scratch(place - node_.first)});
      }
    }
    if (isRoot_) return;
    writer_.needScratch(node_.size);
    for (const Piece& piece : piecesOf(v_))
      writer_.step(2 * node_.height, 0, piece.count, {scratch(piece.offset)}, {parent()});
  }

  void scatter() {
    const int round = 2 * node_.depth;  // in which it sends; it received in the round before
    if (!isRoot_) {
      for (const Piece& piece : piecesOf(v_))
        writer_.step(round - 1, 0, piece.count, {parent()}, {isLeaf() ? output(0) : scratch(piece.offset)});
      if (isLeaf()) return;
      writer_.needScratch(node_.size);
    }
    for (const int child : largestFirst()) {
      for (const Piece& piece : piecesOf(child)) {
        const int place = tree_.node(child).first + piece.offset;
        writer_.step(round, 0, piece.count, {isRoot_ ? input(tree_.rankOf(place)) : scratch(place - node_.first)},
                     {peer(tree_.rankOf(child))});
      }
    }
    writer_.step(round, 0, 1, {isRoot_ ? input(rank_) : scratch(v_ - node_.first)}, {output(0)});
  }

  void allGather() {
    const int turn = 2 * tree_.node(tree_.root()).height;  // in which the root has all and hands it on
    if (isLeaf()) {
      writer_.step(0, 0, 1, {input(0)}, {parent()});  // its block comes back with the others
    } else {
      writer_.step(0, 0, 1, {input(0)}, {output(rank_)});
      for (const int child : node_.children)
        writer_.step(2 * tree_.node(child).height + 1, 0, tree_.node(child).size, {peer(tree_.rankOf(child))},
                     {output(tree_.node(child).first)});
      if (!isRoot_) writer_.step(2 * node_.height, 0, node_.size, {output(node_.first)}, {parent()});
    }
    std::vector<Operand> whole = peersBelow();
    if (!isRoot_) whole.insert(whole.begin(), output(0));
    writer_.step(turn + node_.depth, 0, tree_.size(), {isRoot_ ? output(0) : parent()}, whole);
  }

  void reduceScatter() {
    writer_.needScratch(tree_.size());
    reduceUp({scratch(0)}, tree_.size());
    const int turn = tree_.node(tree_.root()).height;
    const int round = turn + 2 * node_.depth + 1;  // in which it hands parts on; it got them in the round before
    if (!isRoot_) writer_.step(round - 1, 0, node_.size, {parent()}, {isLeaf() ? output(0) : scratch(0)});
    if (isLeaf()) return;
    for (const int child : largestFirst())
      writer_.step(round, 0, tree_.node(child).size, {scratch(tree_.node(child).first - node_.first)},
                   {peer(tree_.rankOf(child))});
    writer_.step(round, 0, 1, {scratch(v_ - node_.first)}, {output(0)});
  }

 private:
  Operand parent() const { return peer(tree_.rankOf(node_.parent)); }
  bool isLeaf() const { return !isRoot_ && node_.children.empty(); }

  std::vector<int> largestFirst() const {
    std::vector<int> children = node_.children;
    std::ranges::stable_sort(children, std::greater(), [&](int child) { return tree_.node(child).size; });
    return children;
  }

  std::vector<Operand> peersBelow() const {
    std::vector<Operand> peers;
    for (const int child : largestFirst()) peers.push_back(peer(tree_.rankOf(child)));
    return peers;
  }

  std::vector<Operand> outputAndChildren() const {
    std::vector<Operand> destinations = peersBelow();
    destinations.insert(destinations.begin(), output(0));
    return destinations;
  }

  /// A rank below the root receives in round start + depth.
  void receiveAndPassOn(int start) { writer_.step(start + node_.depth, 0, 1, {parent()}, outputAndChildren()); }

  /// Every rank forwards to its parent in the round of its height; the root writes to `rootDestinations`.
  void reduceUp(const std::vector<Operand>& rootDestinations, int blocks = 1) {
    std::vector<Operand> sources;
    bool ownIsIn = false;
    for (const int child : node_.children) {
      if (child > v_ && !ownIsIn) sources.push_back(input(0));
      ownIsIn = ownIsIn || child > v_;
      sources.push_back(peer(tree_.rankOf(child)));
    }
    if (!ownIsIn) sources.push_back(input(0));
    writer_.step(node_.height, 0, blocks, sources, isRoot_ ? rootDestinations : std::vector<Operand>{parent()},
                 isRoot_ ? Sum::complete : Sum::partial);
  }

  /// A subtree's blocks as messages between v and its parent: cut where ranks wrap if the parent is the root.
  std::vector<Piece> piecesOf(int v) const {
    const int size = tree_.node(v).size;
    const int beforeWrap = tree_.size() - tree_.rankOf(tree_.node(v).first);
    if (tree_.node(v).parent != tree_.root() || beforeWrap >= size) return {{0, size}};
    return {{0, beforeWrap}, {beforeWrap, size - beforeWrap}};
  }

  PlanWriter& writer_;
  const Tree& tree_;
  int rank_;
  int v_;  // its place
  const TreeNode& node_;
  bool isRoot_;
};

/// A collective that trees serve, and how a place of one writes it.
struct OnTree {
  Collective collective;
  void (TreeWriter::*write)();
};
constexpr OnTree onTrees[] = {
    {Collective::allReduce, &TreeWriter::allReduce}, {Collective::broadcast, &TreeWriter::broadcast},
    {Collective::reduce, &TreeWriter::reduce},       {Collective::gather, &TreeWriter::gather},
    {Collective::allGather, &TreeWriter::allGather}, {Collective::reduceScatter, &TreeWriter::reduceScatter},
    {Collective::scatter, &TreeWriter::scatter},
};

}  // namespace

bool isServedByTrees(Collective collective) noexcept {
  return std::ranges::find(onTrees, collective, &OnTree::collective) != std::end(onTrees);
}

void writeOnTree(const PlanRequest& request, const Tree& tree, PlanWriter& writer) {
  const OnTree* const found = std::ranges::find(onTrees, request.collective, &OnTree::collective);
  if (found == std::end(onTrees)) fail(taccInternalError, "no tree serves {}", nameOf(request.collective));
  TreeWriter place(writer, tree);
  (place.*found->write)();
}

}  // namespace tacc
