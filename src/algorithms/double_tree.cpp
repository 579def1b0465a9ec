// Double binary tree (Sanders, Speck, Träff): two binary trees, each for one half of the vector.
//
//   In one binary tree the leaves only receive, so half of the ranks never send. Here a second tree is laid over the
//   same ranks so that every rank is a leaf in at most one of them; each tree carries one of B = 2 blocks.
//
//   Tree 0 over n places 1 .. n: the root is the largest power of two <= n, its left subtree the tree over the places
//   before it, its right subtree the same construction over those after it. So odd places are leaves, even ones inner.
//   Tree 1: for even n the mirror image (place i is n + 1 - i), which swaps odd and even. For odd n the mirror image
//   over the first n-1 places, with place n as its root on top. n = 6 and n = 5:
//           4                3                    4              5
//        2     6          1     5              2     5         1
//       1 3   5             2  4 6            1 3               3
//                                                              2 4
//   allreduce: both trees over all p ranks, reduce up, broadcast down. broadcast and reduce: the trees are over the p-1
//   others, and the root of the collective stands above both tree roots.
//   Partial results are combined in the order of places: every block in the order of ranks (rooted: from the root on).
//
//   Steps: allreduce at most 2 floor(lg p) + 2, broadcast and reduce at most floor(lg p) + 2; for powers of two from 4
//   on 2 lg p and lg p + 1. Bytes: broadcast and reduce: no rank sends or receives more than N; allreduce: 2 N. With
//   chunks behind one another that is full bandwidth at logarithmic latency.
//
//   P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. (2009).
#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/shapes.hpp"

namespace tacc {

/// The same trees as buildTree(), as parents only.
Tree doubleTree(int which, int n) {
  std::vector<int> parents(static_cast<std::size_t>(n), -1);
  const int inner = which == 1 && n % 2 == 1 && n > 1 ? n - 1 : n;
  const auto build = [&](const auto& self, int begin, int end) -> int {
    int size = 1;
    while (2 * size <= end - begin) size *= 2;
    const int root = begin + size - 1;
    if (begin < root) parents[self(self, begin, root)] = root;
    if (root + 1 < end) parents[self(self, root + 1, end)] = root;
    return root;
  };
  const int root = build(build, 0, inner);
  if (which == 0) return {parents, root};
  std::reverse(parents.begin(), parents.begin() + inner);
  for (int& parent : parents) parent = parent < 0 ? -1 : inner - 1 - parent;
  if (inner == n) return {parents, inner - 1 - root};
  parents[inner - 1 - root] = n - 1;
  return {parents, n - 1};
}

namespace {

/// Places here are 0 .. n-1. A node's children are at most one before it and one after it.
struct Node {
  int parent = -1;
  std::vector<int> children;
  int depth = 0;   // steps from the tree's root
  int height = 0;  // steps from the lowest leaf
};

struct HalfTree {
  std::vector<Node> nodes;
  int root = 0;
};

/// Builds tree 0 over [begin, end) of `tree`; returns its root.
int buildInOrder(HalfTree& tree, int begin, int end) {
  int size = 1;
  while (2 * size <= end - begin) size *= 2;
  const int root = begin + size - 1;
  const auto adopt = [&](int child) {
    tree.nodes[root].children.push_back(child);
    tree.nodes[child].parent = root;
  };
  if (begin < root) adopt(buildInOrder(tree, begin, root));
  if (root + 1 < end) adopt(buildInOrder(tree, root + 1, end));
  return root;
}

int measure(HalfTree& tree, int place, int depth) {
  Node& node = tree.nodes[place];
  node.depth = depth;
  for (const int child : node.children) node.height = std::max(node.height, measure(tree, child, depth + 1) + 1);
  return node.height;
}

HalfTree mirror(const HalfTree& tree) {
  const int last = static_cast<int>(tree.nodes.size()) - 1;
  HalfTree image = tree;
  std::reverse(image.nodes.begin(), image.nodes.end());
  for (Node& node : image.nodes) {
    if (node.parent >= 0) node.parent = last - node.parent;
    for (int& child : node.children) child = last - child;
    std::reverse(node.children.begin(), node.children.end());
  }
  image.root = last - tree.root;
  return image;
}

HalfTree inOrderTree(int n) {
  HalfTree tree;
  tree.nodes.resize(static_cast<std::size_t>(n));
  tree.root = buildInOrder(tree, 0, n);
  return tree;
}

HalfTree buildTree(int which, int n) {
  HalfTree tree;
  if (which == 0) {
    tree = inOrderTree(n);
  } else if (n % 2 == 0 || n == 1) {
    tree = mirror(inOrderTree(n));
  } else {
    tree = mirror(inOrderTree(n - 1));
    tree.nodes.push_back({});
    tree.nodes.back().children = {tree.root};
    tree.nodes[tree.root].parent = n - 1;
    tree.root = n - 1;
  }
  measure(tree, tree.root, 0);
  return tree;
}

/// One tree's half of a collective; block `b` is tree b's. The part of one rank.
struct Half {
  PlanWriter& writer;
  const HalfTree& tree;
  int b;
  int p;
  int shift;                                   // rank of place 0
  int place = wrap(writer.rank() - shift, p);  // beyond the last one: the collective's root, which stands above
  bool isAbove = place >= static_cast<int>(tree.nodes.size());
  bool isTop = place == tree.root;

  const Node& node() const { return tree.nodes[static_cast<std::size_t>(place)]; }
  Operand peerAt(int other) const { return peer(wrap(other + shift, p)); }

  /// What the rank adds up: its children and its own input, in the order of places.
  std::vector<Operand> contributions() const {
    std::vector<Operand> sources;
    bool ownIsIn = false;
    for (const int child : node().children) {
      if (child > place && !ownIsIn) {
        sources.push_back(input(b));
        ownIsIn = true;
      }
      sources.push_back(peerAt(child));
    }
    if (!ownIsIn) sources.push_back(input(b));
    return sources;
  }

  std::vector<Operand> outputAndChildren() const {
    std::vector<Operand> destinations = {output(b)};
    for (const int child : node().children) destinations.push_back(peerAt(child));
    return destinations;
  }

  /// Below the tree's root: adds up and forwards to the parent.
  void reduceUp() const { writer.step(node().height, b, 1, contributions(), {peerAt(node().parent)}); }

  /// Below the tree's root: takes from the parent, in round start + depth, and passes on.
  void broadcastDown(int start) const {
    writer.step(start + node().depth, b, 1, {peerAt(node().parent)}, outputAndChildren());
  }

  void allReduce() const {
    const int height = tree.nodes[tree.root].height;
    if (isTop) return writer.step(height, b, 1, contributions(), outputAndChildren(), Sum::complete);
    reduceUp();
    broadcastDown(height);
  }

  void broadcast(int root) const {
    if (isAbove) return writer.step(0, b, 1, {input(b)}, {output(b), peerAt(tree.root)});
    if (isTop) return writer.step(1, b, 1, {peer(root)}, outputAndChildren());
    broadcastDown(1);
  }

  void reduce(int root) const {
    const int height = tree.nodes[tree.root].height;
    if (isAbove) return writer.step(height + 1, b, 1, {input(b), peerAt(tree.root)}, {output(b)}, Sum::complete);
    if (isTop) return writer.step(height, b, 1, contributions(), {peer(root)});
    reduceUp();
  }
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::broadcast, Collective::reduce});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks;
  const bool rooted = isRooted(request.collective);
  writer.cutInto(2);
  for (int which = 0; which < 2; ++which) {
    const HalfTree tree = buildTree(which, rooted ? p - 1 : p);
    const Half half{writer, tree, which, p, rooted ? request.root + 1 : 0};
    if (request.collective == Collective::allReduce) {
      half.allReduce();
    } else if (request.collective == Collective::broadcast) {
      half.broadcast(request.root);
    } else {
      half.reduce(request.root);
    }
  }
}

/// Of a rooted collective: the trees over the others, below the root.
Tree belowRoot(int which, const PlanRequest& request) {
  const Tree others = doubleTree(which, request.ranks - 1);
  std::vector<int> parents = {-1};
  for (int place = 0; place < others.size(); ++place) parents.push_back(others.node(place).parent + 1);
  return {parents, request.root};
}

Exchanges exchanges(const PlanRequest& request) {
  const bool isRooted = tacc::isRooted(request.collective);
  TreeExchange trees;
  for (int which = 0; which < 2; ++which)
    trees.trees.push_back(
        {std::make_shared<const Tree>(isRooted ? belowRoot(which, request) : doubleTree(which, request.ranks))});
  trees.isDown = request.collective == Collective::broadcast;
  trees.turns = request.collective == Collective::allReduce;
  trees.combines = !trees.isDown;
  return {2, {trees}};
}

}  // namespace

constinit const Algorithm doubleTreeAlgorithm = {
    "double_tree",
    "Two binary trees, half of the data each, every rank inner in one: logarithmic steps at full bandwidth.",
    "Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009",
    serves,
    write,
    exchanges};

}  // namespace tacc
