// k-nomial trees: the root's data reaches k, k^2, k^3, ... ranks. The binomial tree is the one with k = 2.
//
//   v = (rank - root) mod p, unit(v) = the power of k at its lowest digit that is not 0. The parent of v > 0 is v
//   without that digit; the subtree of v is [v, v + unit(v)), cut off at p; children of v are v + j k^i with 1 <= j < k
//   inside it. k = 2, p = 8:                                k = 4, p = 8:
//                 0                                        0
//         1   2       4                             1  2  3  4
//             3     5   6                                    5  6  7
//                       7
//   A rank sends to all its children at once, so a larger k has fewer steps and more bytes at the root.
//
//   Steps (longest path; messages to several children at once count as one step): the largest number of digits that
//   are not 0 of any v < p, at most ceil(log_k p), for k = 2 floor(lg p); allreduce, allgather and reduce-scatter twice
//   that. Bytes: broadcast at most (k-1) ceil(log_k p) N sent by the root; reduce N sent, as much received by the root;
//   gather and scatter p-1 blocks at the root; allgather and reduce-scatter p blocks to or from each child of it. These
//   two have 2 (p-1) messages where butterflies have p lg p: for blocks so small that messages cost more than bytes.
//
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. IJHPCA (2005).
//   k > 2: M. Bernaschi, G. Iannello: Collective communication operations: experimental results vs. theory.
//   Concurrency: Practice and Experience 10 (1998).
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/shapes.hpp"

namespace tacc {
namespace {

constexpr std::string_view nameOfRadix(int radix) {
  return radix == 2 ? "binomial" : radix == 4 ? "knomial_4" : "knomial_8";
}

bool serves(const PlanRequest& request) { return request.ranks >= 1 && isServedByTrees(request.collective); }

template <int radix>
void write(const PlanRequest& request, PlanWriter& writer) {
  const int root = isRooted(request.collective) ? request.root : 0;
  writeOnTree(request, knomialTree(radix, request.ranks, root), writer);
}

template <int radix>
Exchanges exchanges(const PlanRequest& request) {
  const int root = isRooted(request.collective) ? request.root : 0;
  return exchangesOnTree(request, knomialTree(radix, request.ranks, root));
}

constexpr std::string_view fewerSteps = "Bernaschi, Iannello: Collective communication operations, 1998";

}  // namespace

Tree knomialTree(int radix, int p, int root) {
  std::vector<int> parents(static_cast<std::size_t>(p), -1);
  for (int v = 1; v < p; ++v) {
    int unit = 1;
    while (v / unit % radix == 0) unit *= radix;
    parents[v] = v - v / unit % radix * unit;
  }
  return {parents, root};
}

constinit const Algorithm binomialAlgorithm = {
    nameOfRadix(2),
    "Binomial tree: lg p steps along the deepest path: rooted collectives with small data.",
    "Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005",
    serves,
    write<2>,
    exchanges<2>};

constinit const Algorithm knomial4Algorithm = {
    nameOfRadix(4), "Tree with three children a digit: half the steps of binomial, more messages at the root.",
    fewerSteps,     serves,
    write<4>,       exchanges<4>};

constinit const Algorithm knomial8Algorithm = {
    nameOfRadix(8), "Tree with seven children a digit: a third of the steps of binomial, most messages at the root.",
    fewerSteps,     serves,
    write<8>,       exchanges<8>};

}  // namespace tacc
