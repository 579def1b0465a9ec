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
#include "algorithms/catalogue.hpp"
#include "algorithms/chain_tree.hpp"

namespace tacc {
namespace {

Tree treeOf(const PlanRequest& request) { return chainTree(chainGroupsOf(request), request.ranks); }

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && request.collective == Collective::allReduce && !request.groups.empty() &&
         groupsFit(request);
}

void write(const PlanRequest& request, PlanWriter& writer) { writeUpAndDown(treeOf(request), writer); }

Exchanges exchanges(const PlanRequest& request) { return exchangesUpAndDown(treeOf(request)); }

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
