// Bine: binomial trees and butterflies whose partners lie on alternating sides, so that they are nearer.
//
//   Distances rho_s = (1 - (-2)^(s+1)) / 3: 1, -1, 3, -5, 11, ... In place of 2^s, so every exchange goes about 2/3 as
//   far, and less of it crosses from one group of neighbours into another, whatever the groups are.
//
//   Butterfly: in level s place v exchanges with v + rho_s (v even) or v - rho_s (v odd), modulo P, the largest halves
//   first and with the nearest (butterfly.hpp has how, steps and bytes). P = 8:
//     level 0   0-1  2-3  4-5  6-7      level 1   0-7  1-2  3-4  5-6      level 2   0-3  2-5  4-7  6-1
//
//   Tree: a rank that looks after an interval of n places hands the half in which it is not to a child. Both stand at
//   about a third of their half, away from the cut, at f(n) places from one end of their interval with f(1) = 0,
//   f(n) = ceil(n/2) - 1 - f(ceil(n/2)). For powers of two that is the paper's distance-halving tree; it also serves
//   any other number. p = 8, counted from the root, which stands third in [-2, 5]:
//                   0
//         -1        1        3             Steps floor(lg p), bytes as in the binomial tree.
//         -2                2  4
//                              5
//
//   D. De Sensi, S. Pasqualoni, L. Piarulli et al.: Bine trees: enhancing collective operations by optimizing
//   communication locality. SC 2025.
#include "algorithms/butterfly.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

/// f(n)
int standingOf(int n) { return n == 1 ? 0 : (n + 1) / 2 - 1 - standingOf((n + 1) / 2); }

/// [begin, begin + n), whose root stands at standingOf(n) from the end on which `fromRight` says. Returns the root.
int build(std::vector<int>& parents, int begin, int n, bool fromRight) {
  const int root = fromRight ? begin + n - 1 - standingOf(n) : begin + standingOf(n);
  while (n > 1) {
    const int mine = (n + 1) / 2, theirs = n / 2;
    const int theirBegin = fromRight ? begin : begin + mine;
    parents[build(parents, theirBegin, theirs, fromRight)] = root;
    if (fromRight) begin += theirs;
    n = mine;
    fromRight = !fromRight;
  }
  return root;
}

Tree bineTree(int p, int root) {
  std::vector<int> parents(static_cast<std::size_t>(p), -1);
  build(parents, 0, p, false);
  return {parents, root};
}

int alternatingPartner(int place, int level, int size, const std::vector<int>&) {
  const int rho = alternatingDistance(level);
  return wrap(place % 2 == 0 ? place + rho : place - rho, size);
}

bool serves(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  const bool halves = isOneOf(request.collective, {Collective::reduceScatter, Collective::allGather});
  return (halves && isPowerOfTwo(request.ranks)) || request.collective == Collective::allReduce ||
         (isRooted(request.collective) && isServedByTrees(request.collective));
}

void write(const PlanRequest& request, PlanWriter& writer) {
  if (isRooted(request.collective)) return writeOnTree(request, bineTree(request.ranks, request.root), writer);
  writeButterfly(request, alternatingPartner, writer);
}

Exchanges exchanges(const PlanRequest& request) {
  if (isRooted(request.collective)) return exchangesOnTree(request, bineTree(request.ranks, request.root));
  return exchangesOfButterfly(request, alternatingPartner);
}

}  // namespace

constinit const Algorithm bineAlgorithm = {
    "bine",
    "Binomial trees and butterflies with partners on alternating sides: fewer bytes between groups of neighbours.",
    "De Sensi et al.: Bine trees: enhancing collective operations by optimizing communication locality, SC 2025",
    serves,
    write,
    exchanges};

}  // namespace tacc
