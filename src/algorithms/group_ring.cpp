// Ring of groups that differ: a block goes once over every group's link, and from the rank that gets it to the others
// of its group.
//
//   In a ring of ranks a block reaches the ranks of a group one after the other, so also those that come before the
//   place where the ring enters: all blocks but one go over each link between two groups. Here a group sends the next
//   one all blocks but that group's own.
//
//   Block i of a group (of its i-th rank) is carried in a group of s ranks by rank i mod s. Groups of 3, 2, 2 ranks
//   (0-2, 3-4, 5-6), allgather, what goes from group to group:
//     round 0   0 1 2: 0, 2 -> 3, 1 -> 4     3 4: 3 -> 5, 4 -> 6     5 6: 5 -> 0, 6 -> 1
//     round 1   5 6:   5 -> 3 by 0, 6 -> 4 by 1                      and so on
//   A carrier hands a block on to the next group and to the others of its own in the step in which it gets it.
//   Reduce-scatter: block b begins in the group after that of rank b. In every group the others hand the carrier what
//   they have, it adds all up with what comes from the group before, and hands the sum on; at last to rank b, its own
//   carrier.
//
//   G groups: steps G. Blocks over the link of a group of s ranks: allgather P - s in, what it needs, and P - s' out,
//   s' the ranks of the next group; reduce-scatter P - s out, and in all but the group's before. Inside a group each
//   block goes once to (from) every rank.
//
//   Our own; rings: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. JPDC
//   69 (2009).
#include <algorithm>
#include <functional>
#include <memory>

#include "algorithms/catalogue.hpp"
#include "algorithms/nesting.hpp"
#include "core/index.hpp"

namespace tacc {
namespace {

/// The price follows each block along its way to every rank.
constexpr int mostRanks = 128;

/// The innermost groups of more than one rank.
struct GroupsInRing {
  std::vector<int> sizes;
  std::vector<int> begins = {0};
  int count;

  explicit GroupsInRing(const PlanRequest& request)
      : sizes(nestingOf(request).front().sizes), count(static_cast<int>(sizes.size())) {
    for (const int size : sizes) begins.push_back(begins.back() + size);
  }

  int sizeOf(int group) const { return sizes[at(wrap(group, count))]; }
  int firstOf(int group) const { return begins[at(wrap(group, count))]; }
  int carrierIn(int group, int block) const { return firstOf(group) + block % sizeOf(group); }
  int groupWith(int rank) const {
    return static_cast<int>(std::ranges::upper_bound(begins, rank) - begins.begin()) - 1;
  }
};

/// The part of one rank.
class GroupRing {
 public:
  GroupRing(const PlanRequest& request, PlanWriter& writer) : groups_(request), writer_(writer) {}

  void allGather() const {
    for (int turn = 0; turn < groups_.count; ++turn) {
      const int from = group_ - turn;
      for (int i = 0; i < groups_.sizeOf(from); ++i) {
        const int block = groups_.firstOf(from) + i, carrier = groups_.carrierIn(group_, i);
        if (carrier != r_) {
          writer_.step(turn + 1, 0, 1, {peer(carrier)}, {output(block)});
          continue;
        }
        std::vector<Operand> destinations = {output(block)};
        if (turn + 1 < groups_.count) destinations.push_back(peer(groups_.carrierIn(group_ + 1, i)));
        for (const int other : othersHere()) destinations.push_back(peer(other));
        writer_.step(turn, 0, 1, {turn == 0 ? input(0) : peer(groups_.carrierIn(group_ - 1, i))}, destinations);
      }
    }
  }

  void reduceScatter() const {
    for (int turn = 0; turn < groups_.count; ++turn) {
      const int to = group_ - 1 - turn;
      const bool isLast = turn + 1 == groups_.count;
      for (int i = 0; i < groups_.sizeOf(to); ++i) {
        const int block = groups_.firstOf(to) + i, carrier = groups_.carrierIn(group_, i);
        if (carrier != r_) {
          writer_.step(turn, 0, 1, {input(block)}, {peer(carrier)});
          continue;
        }
        std::vector<Operand> sources = {input(block)};
        if (turn > 0) sources.push_back(peer(groups_.carrierIn(group_ - 1, i)));
        for (const int other : othersHere()) sources.push_back(peer(other));
        writer_.step(turn + 1, 0, 1, sources, {isLast ? output(0) : peer(groups_.carrierIn(group_ + 1, i))},
                     isLast ? Sum::complete : Sum::partial);
      }
    }
  }

 private:
  /// The other ranks of the group, beginning with the next one.
  std::vector<int> othersHere() const {
    std::vector<int> others;
    const int size = groups_.sizeOf(group_), first = groups_.firstOf(group_);
    for (int shift = 1; shift < size; ++shift) others.push_back(first + (r_ - first + shift) % size);
    return others;
  }

  GroupsInRing groups_;
  PlanWriter& writer_;
  int r_ = writer_.rank();
  int group_ = groups_.groupWith(r_);
};

bool serves(const PlanRequest& request) {
  if (request.ranks < 1 || request.ranks > mostRanks || request.groups.empty() || !groupsFit(request)) return false;
  if (!isOneOf(request.collective, {Collective::allGather, Collective::reduceScatter})) return false;
  const std::vector<NestingLevel> nesting = nestingOf(request);
  return !nesting.empty() &&
         std::ranges::adjacent_find(nesting.front().sizes, std::not_equal_to()) != nesting.front().sizes.end();
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const GroupRing ring(request, writer);
  if (request.collective == Collective::allGather) return ring.allGather();
  ring.reduceScatter();
}

/// The way of every block is a tree: the carriers are a line, and under each are the others of its group.
Exchanges exchanges(const PlanRequest& request) {
  const GroupsInRing groups(request);
  TreeExchange all;
  all.isDown = request.collective == Collective::allGather;
  all.combines = !all.isDown;
  const int onward = all.isDown ? 1 : -1;
  for (int owner = 0; owner < request.ranks; ++owner) {
    const int home = groups.groupWith(owner), i = owner - groups.firstOf(home);
    std::vector<int> parents(at(request.ranks), -1);
    for (int turn = 0; turn < groups.count; ++turn) {
      const int group = home + onward * turn, carrier = groups.carrierIn(group, i), first = groups.firstOf(group);
      for (int r = first; r < first + groups.sizeOf(group); ++r) parents[at(r)] = carrier;
      parents[at(carrier)] = turn == 0 ? -1 : groups.carrierIn(group - onward, i);
    }
    all.trees.push_back({std::make_shared<const Tree>(parents, owner)});
  }
  return {1, {all}};
}

}  // namespace

constinit const Algorithm groupRingAlgorithm = {
    "group_ring",
    "A ring of groups of unequal size: over each group's link goes only what the group needs, for large data.",
    "Our own; rings: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009",
    serves,
    write,
    exchanges,
    true};

}  // namespace tacc
