#include "algorithms/tree.hpp"

#include <algorithm>

#include "algorithms/plan_writer.hpp"

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
  measure(root_, 0);
}

int Tree::rankOf(int place) const noexcept { return wrap(rank_ + place - root_, size()); }

void Tree::measure(int place, int depth) {
  TreeNode& node = nodes_[place];
  node.depth = depth;
  node.first = node.last = place;
  for (const int child : node.children) {
    measure(child, depth + 1);
    node.first = std::min(node.first, nodes_[child].first);
    node.last = std::max(node.last, nodes_[child].last);
    node.size += nodes_[child].size;
    node.height = std::max(node.height, nodes_[child].height + 1);
  }
}

namespace {

/// A subtree's blocks, or those that one message carries, counted from the subtree's first place.
struct Piece {
  int offset;
  int count;
};

class TreeWriter {
 public:
  TreeWriter(PlanWriter& writer, const Tree& tree) : writer_(writer), tree_(tree) {}

  void broadcast() {
    writer_.step(tree_.rankOf(tree_.root()), 0, 0, 1, {input(0)}, outputAndChildren(tree_.root()));
    broadcastBelowRoot(0);
  }

  void reduce() { reduceUp({output(0)}); }

  void allReduce() {
    reduceUp(outputAndChildren(tree_.root()));
    broadcastBelowRoot(tree_.node(tree_.root()).height);
  }

  void gather() {
    for (int v = 0; v < tree_.size(); ++v) {
      const TreeNode& node = tree_.node(v);
      const int rank = tree_.rankOf(v);
      const bool isRoot = v == tree_.root();
      if (!isRoot && node.children.empty()) {
        writer_.step(rank, 0, 0, 1, {input(0)}, {parentOf(v)});
        continue;
      }
      writer_.step(rank, 0, 0, 1, {input(0)}, {isRoot ? output(rank) : scratch(v - node.first)});
      for (const int child : node.children) {
        // A leaf sends in round 0, others in twice their height.
        const int round = 2 * tree_.node(child).height + 1;
        for (const Piece& piece : piecesOf(child)) {
          const int place = tree_.node(child).first + piece.offset;
          writer_.step(rank, round, 0, piece.count, {peer(tree_.rankOf(child))},
                       {isRoot ? output(tree_.rankOf(place)) : scratch(place - node.first)});
        }
      }
      if (isRoot) continue;
      writer_.needScratch(sizeOf(v));
      for (const Piece& piece : piecesOf(v)) {
        writer_.step(rank, 2 * node.height, 0, piece.count, {scratch(piece.offset)}, {parentOf(v)});
      }
    }
  }

  void scatter() {
    for (int v = 0; v < tree_.size(); ++v) {
      const TreeNode& node = tree_.node(v);
      const int rank = tree_.rankOf(v);
      const bool isRoot = v == tree_.root();
      const bool leaf = !isRoot && node.children.empty();
      const int round = 2 * node.depth;  // in which it sends; it received in the round before
      for (const Piece& piece : isRoot ? std::vector<Piece>{} : piecesOf(v)) {
        writer_.step(rank, round - 1, 0, piece.count, {parentOf(v)}, {leaf ? output(0) : scratch(piece.offset)});
      }
      if (leaf) continue;
      if (!isRoot) writer_.needScratch(sizeOf(v));
      for (const int child : largestFirst(v)) {
        for (const Piece& piece : piecesOf(child)) {
          const int place = tree_.node(child).first + piece.offset;
          writer_.step(rank, round, 0, piece.count, {isRoot ? input(tree_.rankOf(place)) : scratch(place - node.first)},
                       {peer(tree_.rankOf(child))});
        }
      }
      writer_.step(rank, round, 0, 1, {isRoot ? input(rank) : scratch(v - node.first)}, {output(0)});
    }
  }

  void allGather() {
    const int p = tree_.size();
    const int turn = 2 * tree_.node(tree_.root()).height;  // in which the root has all and hands it on
    for (int v = 0; v < p; ++v) {
      const TreeNode& node = tree_.node(v);
      const int rank = tree_.rankOf(v);
      const bool isRoot = v == tree_.root();
      if (node.children.empty() && !isRoot) {
        writer_.step(rank, 0, 0, 1, {input(0)}, {parentOf(v)});  // its block comes back with the others
      } else {
        writer_.step(rank, 0, 0, 1, {input(0)}, {output(rank)});
        for (const int child : node.children)
          writer_.step(rank, 2 * tree_.node(child).height + 1, 0, sizeOf(child), {peer(tree_.rankOf(child))},
                       {output(tree_.node(child).first)});
        if (!isRoot) writer_.step(rank, 2 * node.height, 0, sizeOf(v), {output(node.first)}, {parentOf(v)});
      }
      std::vector<Operand> whole = peersBelow(v);
      if (!isRoot) whole.insert(whole.begin(), output(0));
      writer_.step(rank, turn + node.depth, 0, p, {isRoot ? output(0) : parentOf(v)}, whole);
    }
  }

  void reduceScatter() {
    const int p = tree_.size();
    writer_.needScratch(p);
    reduceUp({scratch(0)}, p);
    const int turn = tree_.node(tree_.root()).height;
    for (int v = 0; v < p; ++v) {
      const TreeNode& node = tree_.node(v);
      const int rank = tree_.rankOf(v);
      const bool isRoot = v == tree_.root();
      const bool leaf = !isRoot && node.children.empty();
      const int round = turn + 2 * node.depth + 1;  // in which it hands parts on; it got them in the round before
      if (!isRoot) writer_.step(rank, round - 1, 0, sizeOf(v), {parentOf(v)}, {leaf ? output(0) : scratch(0)});
      if (leaf) continue;
      for (const int child : largestFirst(v))
        writer_.step(rank, round, 0, sizeOf(child), {scratch(tree_.node(child).first - node.first)},
                     {peer(tree_.rankOf(child))});
      writer_.step(rank, round, 0, 1, {scratch(v - node.first)}, {output(0)});
    }
  }

 private:
  Operand parentOf(int v) const { return peer(tree_.rankOf(tree_.node(v).parent)); }
  int sizeOf(int v) const { return tree_.node(v).size; }

  std::vector<int> largestFirst(int v) const {
    std::vector<int> children = tree_.node(v).children;
    std::stable_sort(children.begin(), children.end(), [&](int a, int b) { return sizeOf(a) > sizeOf(b); });
    return children;
  }

  std::vector<Operand> peersBelow(int v) const {
    std::vector<Operand> peers;
    for (const int child : largestFirst(v)) peers.push_back(peer(tree_.rankOf(child)));
    return peers;
  }

  std::vector<Operand> outputAndChildren(int v) const {
    std::vector<Operand> destinations = peersBelow(v);
    destinations.insert(destinations.begin(), output(0));
    return destinations;
  }

  /// Every rank below the root receives in round start + depth; the root itself is the caller's.
  void broadcastBelowRoot(int start) {
    for (int v = 0; v < tree_.size(); ++v) {
      if (v == tree_.root()) continue;
      writer_.step(tree_.rankOf(v), start + tree_.node(v).depth, 0, 1, {parentOf(v)}, outputAndChildren(v));
    }
  }

  /// Every rank forwards to its parent in the round of its height; the root writes to `rootDestinations`.
  void reduceUp(const std::vector<Operand>& rootDestinations, int blocks = 1) {
    for (int v = 0; v < tree_.size(); ++v) {
      std::vector<Operand> sources;
      bool ownIsIn = false;
      for (const int child : tree_.node(v).children) {
        if (child > v && !ownIsIn) sources.push_back(input(0));
        ownIsIn = ownIsIn || child > v;
        sources.push_back(peer(tree_.rankOf(child)));
      }
      if (!ownIsIn) sources.push_back(input(0));
      writer_.step(tree_.rankOf(v), tree_.node(v).height, 0, blocks, sources,
                   v == tree_.root() ? rootDestinations : std::vector<Operand>{parentOf(v)});
    }
  }

  /// A subtree's blocks as messages between v and its parent: cut where ranks wrap if the parent is the root.
  std::vector<Piece> piecesOf(int v) const {
    const int beforeWrap = tree_.size() - tree_.rankOf(tree_.node(v).first);
    if (tree_.node(v).parent != tree_.root() || beforeWrap >= sizeOf(v)) return {{0, sizeOf(v)}};
    return {{0, beforeWrap}, {beforeWrap, sizeOf(v) - beforeWrap}};
  }

  PlanWriter& writer_;
  const Tree& tree_;
};

}  // namespace

Plan writeOnTree(const PlanRequest& request, std::string_view algorithm, const Tree& tree) {
  PlanWriter writer(request, algorithm);
  TreeWriter onTree(writer, tree);
  switch (request.collective) {
    case Collective::allReduce:
      onTree.allReduce();
      break;
    case Collective::broadcast:
      onTree.broadcast();
      break;
    case Collective::reduce:
      onTree.reduce();
      break;
    case Collective::gather:
      onTree.gather();
      break;
    case Collective::allGather:
      onTree.allGather();
      break;
    case Collective::reduceScatter:
      onTree.reduceScatter();
      break;
    default:
      onTree.scatter();
      break;
  }
  return writer.finish();
}

}  // namespace tacc
