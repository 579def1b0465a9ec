// Binomial tree: the root's data reaches 2, 4, 8, ... ranks.
//
//   v = (rank - root) mod p, low(v) = its lowest set bit. The parent of v > 0 is v - low(v); the subtree of v is
//   [v, v + low(v)), cut off at p, with children v + 1, v + 2, v + 4, ... inside it. p = 8:
//                 0
//         1   2       4
//             3     5   6
//                       7
//
//   broadcast   every rank passes on what comes from its parent, first to the child with most below it.
//   reduce      every rank adds its own and its children's partial results in the order of v, in one pass, and forwards
//               the sum to its parent. Nothing is stored.
//   allreduce   reduce to rank 0, whose last step is the first of the broadcast.
//   gather      stacks of blocks grow towards the root. A rank with children keeps its subtree's blocks in scratch, in
//               the order of v. Only the root's buffer is in the order of ranks: messages to and from the root are cut
//               in two where the rank number wraps.
//   scatter     the same backwards.
//
//   Steps (longest path; messages to several children at once count as one step): floor(lg p), the largest number of
//   set bits of any v < p; allreduce twice that. Bytes: broadcast ceil(lg p) N sent by the root; reduce N sent,
//   ceil(lg p) N received by the root; gather and scatter p-1 blocks at the root.
//
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. IJHPCA (2005).
#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr std::string_view name = "binomial";

class Tree {
 public:
  Tree(int p, int root) : p_(p), root_(root) {
    for (int v = p - 1; v >= 0; --v) {
      for (const int child : childrenOf(v)) height_[v] = std::max(height_[v], height_[child] + 1);
    }
  }
  int p() const { return p_; }
  int rankOf(int v) const { return wrap(v + root_, p_); }
  int parentOf(int v) const { return v & (v - 1); }
  /// Ranks in the subtree of v.
  int sizeOf(int v) const { return v == 0 ? p_ : std::min(v & -v, p_ - v); }
  /// Smallest first.
  std::vector<int> childrenOf(int v) const {
    std::vector<int> children;
    for (int bit = 1; bit < sizeOf(v); bit *= 2) children.push_back(v + bit);
    return children;
  }
  /// Steps from the lowest leaf below v, and from the root.
  int heightOf(int v) const { return height_[v]; }
  int depthOf(int v) const { return __builtin_popcount(static_cast<unsigned>(v)); }

 private:
  int p_;
  int root_;
  std::vector<int> height_ = std::vector<int>(static_cast<std::size_t>(p_), 0);
};

std::vector<Operand> childrenAsPeers(const Tree& tree, int v) {
  std::vector<Operand> peers;
  for (const int child : tree.childrenOf(v)) peers.push_back(peer(tree.rankOf(child)));
  std::reverse(peers.begin(), peers.end());
  return peers;
}

/// Every rank below the root receives in round start + depth; the root itself is the caller's.
void broadcastBelowRoot(PlanWriter& writer, const Tree& tree, int start) {
  for (int v = 1; v < tree.p(); ++v) {
    std::vector<Operand> destinations = childrenAsPeers(tree, v);
    destinations.insert(destinations.begin(), output(0));
    writer.step(tree.rankOf(v), start + tree.depthOf(v), 0, 1, {peer(tree.rankOf(tree.parentOf(v)))}, destinations);
  }
}

/// Every rank forwards to its parent in the round of its height; the root writes to `rootDestinations`.
void reduceUp(PlanWriter& writer, const Tree& tree, const std::vector<Operand>& rootDestinations) {
  for (int v = 0; v < tree.p(); ++v) {
    std::vector<Operand> sources = {input(0)};
    for (const int child : tree.childrenOf(v)) sources.push_back(peer(tree.rankOf(child)));
    writer.step(tree.rankOf(v), tree.heightOf(v), 0, 1, sources,
                v == 0 ? rootDestinations : std::vector<Operand>{peer(tree.rankOf(tree.parentOf(v)))});
  }
}

struct Piece {
  int offset;
  int count;
};

/// A subtree's blocks as messages between v and its parent: cut where ranks wrap if the parent is the root.
std::vector<Piece> piecesOf(const Tree& tree, int v) {
  const int size = tree.sizeOf(v);
  const int beforeWrap = tree.p() - tree.rankOf(v);
  if (tree.parentOf(v) != 0 || beforeWrap >= size) return {{0, size}};
  return {{0, beforeWrap}, {beforeWrap, size - beforeWrap}};
}

void gather(PlanWriter& writer, const Tree& tree) {
  for (int v = 0; v < tree.p(); ++v) {
    const int rank = tree.rankOf(v);
    const Operand toParent = peer(tree.rankOf(tree.parentOf(v)));
    const bool leaf = v > 0 && tree.sizeOf(v) == 1;
    if (leaf) {
      writer.step(rank, 0, 0, 1, {input(0)}, {toParent});
      continue;
    }
    writer.step(rank, 0, 0, 1, {input(0)}, {v == 0 ? output(rank) : scratch(0)});
    for (const int child : tree.childrenOf(v)) {
      // A leaf sends in round 0, others in twice their height.
      const int round = 2 * tree.heightOf(child) + 1;
      for (const Piece& piece : piecesOf(tree, child)) {
        const int block = child - v + piece.offset;
        writer.step(rank, round, 0, piece.count, {peer(tree.rankOf(child))},
                    {v == 0 ? output(tree.rankOf(block)) : scratch(block)});
      }
    }
    if (v == 0) continue;
    writer.needScratch(tree.sizeOf(v));
    for (const Piece& piece : piecesOf(tree, v)) {
      writer.step(rank, 2 * tree.heightOf(v), 0, piece.count, {scratch(piece.offset)}, {toParent});
    }
  }
}

void scatter(PlanWriter& writer, const Tree& tree) {
  for (int v = 0; v < tree.p(); ++v) {
    const int rank = tree.rankOf(v);
    const bool leaf = v > 0 && tree.sizeOf(v) == 1;
    const int round = 2 * tree.depthOf(v);  // in which it sends; it received in the round before
    for (const Piece& piece : v > 0 ? piecesOf(tree, v) : std::vector<Piece>{}) {
      writer.step(rank, round - 1, 0, piece.count, {peer(tree.rankOf(tree.parentOf(v)))},
                  {leaf ? output(0) : scratch(piece.offset)});
    }
    if (leaf) continue;
    if (v > 0) writer.needScratch(tree.sizeOf(v));
    const std::vector<int> children = tree.childrenOf(v);
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      for (const Piece& piece : piecesOf(tree, *child)) {
        const int block = *child - v + piece.offset;
        writer.step(rank, round, 0, piece.count, {v == 0 ? input(tree.rankOf(block)) : scratch(block)},
                    {peer(tree.rankOf(*child))});
      }
    }
    writer.step(rank, round, 0, 1, {v == 0 ? input(rank) : scratch(0)}, {output(0)});
  }
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                      Collective::gather, Collective::scatter});
}

Plan make(const PlanRequest& request) {
  if (request.ranks == 1) return writeCopy(request, name);
  PlanWriter writer(request, name);
  const Tree tree(request.ranks, isRooted(request.collective) ? request.root : 0);
  std::vector<Operand> outputAndChildren = childrenAsPeers(tree, 0);
  outputAndChildren.insert(outputAndChildren.begin(), output(0));
  switch (request.collective) {
    case Collective::allReduce:
      reduceUp(writer, tree, outputAndChildren);
      broadcastBelowRoot(writer, tree, tree.heightOf(0));
      break;
    case Collective::broadcast:
      writer.step(request.root, 0, 0, 1, {input(0)}, outputAndChildren);
      broadcastBelowRoot(writer, tree, 0);
      break;
    case Collective::reduce:
      reduceUp(writer, tree, {output(0)});
      break;
    case Collective::gather:
      gather(writer, tree);
      break;
    default:
      scatter(writer, tree);
      break;
  }
  return writer.finish();
}

}  // namespace

constinit const Algorithm binomialAlgorithm = {
    name, "Binomial tree: lg p steps along the deepest path: rooted collectives with small data.",
    "Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005", serves,
    make};

}  // namespace tacc
