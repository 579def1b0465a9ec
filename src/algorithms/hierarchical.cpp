// Hierarchical plans over nested groups of ranks, such as cores of a host, hosts of a switch, switches of a network.
//
//   allreduce, one level of groups of g ranks:  1. reduce-scatter inside each group: its j-th rank has a g-th of the
//   sum
//                                               2. lane j, the j-th ranks of all groups: allreduce of that g-th
//                                               3. allgather inside each group
//   With more levels step 2 is such a plan itself. So what crosses an uplink is 2 (G-1)/G N for G groups in all,
//   whatever is inside, and each of its ranks carries a g-th. 8 ranks in groups of 2 and of 4 (2 x 2 x 2), rank 0, of
//   blocks 0..7:
//     with 1, sums 0..3    with 2, sums 0..1    with 4, sum 0    and back
//
//   Groups of unequal size have no lanes: there the ranks of a group add up to a leader along a binomial tree, the
//   leaders go on alone with all the data, and the result comes back along the tree.
//
//   alltoall: hierarchical_alltoall.cpp
//
//   broadcast, reduce: a binomial tree among the outermost groups, one in each of them among the groups inside, and so
//   on; the root leads its groups at all levels. So data enters (leaves) every group once.
//
//   What runs inside the groups of a level and in the lanes at the end:
//     hierarchical        circulant graph (circulant.cpp): steps 2 (ceil(lg g1) + ceil(lg g2) + ...)
//     hierarchical_ring   rings: steps 2 (g1 - 1 + g2 - 1 + ...); neighbours only. Also reduce-scatter and allgather,
//     of
//                         groups of equal size, with one message for each block.
//     ring_2d             rings along the rows and then the columns of a rectangle of ranks, or along all the
//     dimensions
//                         that the request names; without any the rectangle is the one that is nearest to a square.
//   Bytes per rank: allreduce 2 (p-1)/p N with groups of equal size, the bound; reduce-scatter, allgather p-1 blocks.
//
//   J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication. CLUSTER 2020.
//   P. Sack, W. Gropp: Collective algorithms for multiported torus networks. ACM TOPC 1 (2015), for rings per
//   dimension.
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include "algorithms/catalogue.hpp"
#include "algorithms/exchange_phases.hpp"
#include "algorithms/hierarchical_alltoall.hpp"
#include "algorithms/nested_stacks.hpp"
#include "algorithms/nesting.hpp"
#include "algorithms/shapes.hpp"
#include "core/index.hpp"

namespace tacc {
namespace {

/// Parents in a binomial tree of n places below place 0.
int binomialParent(int v) { return v & (v - 1); }

int blocksOf(const std::vector<NestingLevel>& levels) {
  int blocks = 1;
  for (const NestingLevel& level : levels) blocks *= level.isEven ? level.sizes[0] : 1;
  return blocks;
}

/// Messages on the longest way through such a tree.
int binomialDepth(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

/// The part of one rank.
class NestedAllReduce {
 public:
  NestedAllReduce(const PlanRequest& request, const ExchangePhases& phases, PlanWriter& writer)
      : phases_(phases), levels_(nestingOf(request)), writer_(writer) {
    std::vector<int> everybody(static_cast<std::size_t>(request.ranks));
    std::iota(everybody.begin(), everybody.end(), 0);
    writer_.cutInto(blocksOf(levels_));
    run(everybody, 0, blocksOf(levels_), 0, false, 0);
  }

 private:
  /// Allreduce of blocks [first, first + count) among `members`, the writer's rank one of them, from level `depth` on.
  void run(std::span<const int> members, int first, int count, std::size_t depth, bool inOutput, int start) {
    if (depth == levels_.size()) return;
    const NestingLevel& level = levels_[depth];
    const auto self = static_cast<std::size_t>(std::ranges::find(members, writer_.rank()) - members.begin());
    if (!level.isEven) return runUnderLeaders(members, self, first, count, depth, inOutput, start);
    const auto size = static_cast<std::size_t>(level.sizes[0]);
    const std::span<const int> group = members.subspan(self / size * size, size);
    const std::size_t j = self % size;
    const int width = count / level.sizes[0], own = first + static_cast<int>(j) * width;
    const PhaseShape shape{
        {group.begin(), group.end()}, static_cast<int>(j), evenStarts(first, width, level.sizes[0]), output};
    const int inner = start + phases_.rounds(level.sizes[0]);
    phases_.reduceScatter(writer_, shape, inOutput, start, depth + 1 == levels_.size() ? Sum::complete : Sum::partial);
    std::vector<int> lane;
    for (std::size_t i = j; i < members.size(); i += size) lane.push_back(members[i]);
    run(lane, own, width, depth + 1, true, inner);
    phases_.allGather(writer_, shape, inner + roundsFrom(depth + 1));
  }

  void runUnderLeaders(std::span<const int> members, std::size_t self, int first, int count, std::size_t depth,
                       bool inOutput, int start) {
    std::vector<int> leaders;
    std::span<const int> own;
    for (std::size_t begin = 0; const int size : levels_[depth].sizes) {
      const std::span<const int> group = members.subspan(begin, static_cast<std::size_t>(size));
      leaders.push_back(group[0]);
      if (begin <= self && self < begin + group.size()) own = group;
      begin += group.size();
    }
    const int inner = start + roundsToLeaders(depth);
    reduceToLeader(own, first, count, inOutput, start);
    if (own[0] == writer_.rank()) run(leaders, first, count, depth + 1, true, inner);
    broadcastFromLeader(own, first, count, inner + roundsFrom(depth + 1));
  }

  /// The leader has the sum in its output, also that of itself alone.
  void reduceToLeader(std::span<const int> group, int first, int count, bool inOutput, int start) {
    const int n = static_cast<int>(group.size()), v = placeIn(group);
    if (n == 1 && inOutput) return;
    std::vector<Operand> sources = {inOutput ? output(first) : input(first)};
    int below = 1;
    for (; v + below < n && (v & below) == 0; below *= 2) sources.push_back(peer(group[at(v + below)]));
    writer_.step(start + binomialDepth(std::min(below, n - v)), first, count, sources,
                 {v == 0 ? output(first) : peer(group[at(binomialParent(v))])});
  }

  void broadcastFromLeader(std::span<const int> group, int first, int count, int start) {
    const int n = static_cast<int>(group.size()), v = placeIn(group);
    std::vector<Operand> destinations;
    int bit = 1;
    while (v + bit < n && (v & bit) == 0) bit *= 2;
    for (bit /= 2; bit >= 1; bit /= 2) destinations.push_back(peer(group[at(v + bit)]));
    if (v > 0) destinations.insert(destinations.begin(), output(first));
    if (destinations.empty()) return;
    const int depth = std::popcount(static_cast<unsigned>(v));
    writer_.step(start + depth, first, count, {v == 0 ? output(first) : peer(group[at(binomialParent(v))])},
                 destinations);
  }

  /// Until the leaders have their groups' sums, or the groups what their leaders have.
  int roundsToLeaders(std::size_t depth) const {
    return binomialDepth(*std::ranges::max_element(levels_[depth].sizes)) + 1;
  }

  /// Of run() from that level on.
  int roundsFrom(std::size_t depth) const {
    int rounds = 0;
    for (; depth < levels_.size(); ++depth)
      rounds += 2 * (levels_[depth].isEven ? phases_.rounds(levels_[depth].sizes[0]) : roundsToLeaders(depth));
    return rounds;
  }

  int placeIn(std::span<const int> group) const {
    return static_cast<int>(std::ranges::find(group, writer_.rank()) - group.begin());
  }

  const ExchangePhases& phases_;
  std::vector<NestingLevel> levels_;
  PlanWriter& writer_;
};

/// What NestedAllReduce writes. Lanes run side by side and are alike.
class NestedExchanges {
 public:
  NestedExchanges(const PlanRequest& request, const ExchangePhases& phases)
      : ranks_(request.ranks), phases_(phases), levels_(nestingOf(request)) {
    std::vector<int> everybody;
    for (int r = 0; r < ranks_; ++r) everybody.push_back(r);
    exchanges_.blocks = blocksOf(levels_);
    run({everybody}, exchanges_.blocks, 0);
  }
  Exchanges take() { return std::move(exchanges_); }

 private:
  using Teams = std::vector<std::vector<int>>;

  void run(const Teams& lanes, int blocks, std::size_t depth) {
    if (depth == levels_.size()) return;
    const NestingLevel& level = levels_[depth];
    if (!level.isEven) return runUnderLeaders(lanes, blocks, depth);
    const auto size = static_cast<std::size_t>(level.sizes[0]);
    Teams groups, inner;
    for (const std::vector<int>& lane : lanes) {
      for (auto member = lane.begin(); member != lane.end(); member += static_cast<std::ptrdiff_t>(size))
        groups.emplace_back(member, member + static_cast<std::ptrdiff_t>(size));
      for (std::size_t j = 0; j < size; ++j) {
        std::vector<int>& mine = inner.emplace_back();
        for (std::size_t i = j; i < lane.size(); i += size) mine.push_back(lane[i]);
      }
    }
    const auto teams = std::make_shared<const tacc::Teams>(ranks_, groups);
    const int width = blocks / level.sizes[0];
    add(phases_.exchanges(teams, width, true));
    run(inner, width, depth + 1);
    add(phases_.exchanges(teams, width, false));
  }

  void runUnderLeaders(const Teams& lanes, int blocks, std::size_t depth) {
    TreeExchange up;
    up.blocks = blocks;
    up.combines = true;
    std::map<int, std::shared_ptr<const Tree>> trees;  // by size
    Teams leaders;
    for (const std::vector<int>& lane : lanes) {
      std::vector<int>& mine = leaders.emplace_back();
      auto next = lane.begin();
      for (const int size : levels_[depth].sizes) {
        std::shared_ptr<const Tree>& tree = trees[size];
        if (tree == nullptr) tree = std::make_shared<const Tree>(knomialTree(2, size, 0));
        mine.push_back(*next);
        if (size > 1) up.trees.push_back({tree, {next, next + size}});
        next += size;
      }
    }
    TreeExchange down = up;
    down.isDown = true;
    down.combines = false;
    exchanges_.phases.emplace_back(std::move(up));
    run(leaders, blocks, depth + 1);
    exchanges_.phases.emplace_back(std::move(down));
  }

  void add(std::vector<Exchange> phases) {
    for (Exchange& exchange : phases) exchanges_.phases.emplace_back(std::move(exchange));
  }

  int ranks_;
  const ExchangePhases& phases_;
  std::vector<NestingLevel> levels_;
  Exchanges exchanges_;
};

/// Binomial trees within binomial trees.
class NestedTree {
 public:
  explicit NestedTree(const PlanRequest& request)
      : request_(request), parents_(static_cast<std::size_t>(request.ranks), -1) {
    grow(0, request.ranks, request.root, request.groups.size());
  }
  Tree take() const { return {parents_, request_.root}; }

 private:
  /// Ranks [begin, end), led by `leader`, a union of groups of level `depth` - 1.
  void grow(int begin, int end, int leader, std::size_t depth) {
    std::vector<int> leaders = {leader};
    int at = 0;
    const auto join = [&](int first, int last) {
      const bool leads = first <= leader && leader < last;
      if (!leads) leaders.push_back(first);
      if (depth > 0 && last - first > 1) grow(first, last, leads ? leader : first, depth - 1);
    };
    if (depth == 0) {
      for (int r = begin; r < end; ++r) join(r, r + 1);
    } else {
      for (const int size : request_.groups[depth - 1]) {
        if (begin <= at && at < end) join(at, at + size);
        at += size;
      }
    }
    for (int v = 1; v < static_cast<int>(leaders.size()); ++v) parents_[leaders[v]] = leaders[binomialParent(v)];
  }

  const PlanRequest& request_;
  std::vector<int> parents_;
};

bool servesRings(const PlanRequest& request) {
  if (request.collective == Collective::allReduce) return true;
  return isOneOf(request.collective, {Collective::allGather, Collective::reduceScatter}) && isEven(nestingOf(request));
}

bool isTree(Collective collective) { return isOneOf(collective, {Collective::broadcast, Collective::reduce}); }

bool hasGroups(const PlanRequest& request) {
  return request.ranks >= 1 && !request.groups.empty() && groupsFit(request);
}

bool serves(const PlanRequest& request) {
  if (request.collective == Collective::allToAll) return servesHierarchicalAllToAll(request);
  return hasGroups(request) && (request.collective == Collective::allReduce || isTree(request.collective));
}

bool servesRing(const PlanRequest& request) { return hasGroups(request) && servesRings(request); }

void write(const PlanRequest& request, PlanWriter& writer) {
  if (request.collective == Collective::allToAll) return writeHierarchicalAllToAll(request, writer);
  if (isTree(request.collective)) return writeOnTree(request, NestedTree(request).take(), writer);
  NestedAllReduce(request, circulantPhases, writer);
}

Exchanges exchanges(const PlanRequest& request) {
  if (request.collective == Collective::allToAll) return exchangesOfHierarchicalAllToAll(request);
  if (isTree(request.collective)) return exchangesOnTree(request, NestedTree(request).take());
  return NestedExchanges(request, circulantPhases).take();
}

void writeRings(const PlanRequest& request, PlanWriter& writer) {
  if (request.collective != Collective::allReduce) return writeNestedStacks(request, writer);
  NestedAllReduce(request, ringPhases, writer);
}

Exchanges exchangesOfRings(const PlanRequest& request) {
  if (request.collective == Collective::allReduce) return NestedExchanges(request, ringPhases).take();
  return exchangesOfNestedStacks(request);
}

/// The dimensions, without the outermost.
std::vector<std::vector<int>> rowsOf(const PlanRequest& request) {
  std::vector<int> sides(request.dimensions.rbegin(), request.dimensions.rend());
  if (sides.empty()) {
    int columns = 1;
    for (int c = 2; c * c <= request.ranks; ++c) columns = request.ranks % c == 0 ? c : columns;
    if (columns == 1) return {};
    sides = {columns, request.ranks / columns};
  }
  sides.pop_back();
  return sides.empty() ? std::vector<std::vector<int>>{{request.ranks}} : equalGroups(request.ranks, sides);
}

PlanRequest asGroups(const PlanRequest& request) {
  PlanRequest grouped = request;
  grouped.groups = rowsOf(request);
  return grouped;
}

bool servesRectangle(const PlanRequest& request) {
  if (request.ranks < 1 || (!request.dimensions.empty() && !dimensionsFit(request))) return false;
  if (request.dimensions.empty() && request.ranks > 1 && rowsOf(request).empty()) return false;
  return servesRings(asGroups(request));
}

void writeRectangle(const PlanRequest& request, PlanWriter& writer) { writeRings(asGroups(request), writer); }
Exchanges exchangesOfRectangle(const PlanRequest& request) { return exchangesOfRings(asGroups(request)); }

constexpr std::string_view lanes =
    "Träff, Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020";

}  // namespace

constinit const Algorithm hierarchicalAlgorithm = {
    "hierarchical",
    "Reduce-scatter inside each group, the same between groups at every level, allgather back; needs groups.",
    lanes,
    serves,
    write,
    exchanges,
    true};

constinit const Algorithm hierarchicalRingAlgorithm = {
    "hierarchical_ring",
    "The same with rings inside and between groups: fewest bytes over uplinks, for large data; needs groups.",
    lanes,
    servesRing,
    writeRings,
    exchangesOfRings,
    true};

constinit const Algorithm ring2dAlgorithm = {
    "ring_2d",
    "Rings along rows, then columns, of a rectangle or torus: fewest bytes in 2 (r-1) + 2 (c-1) steps.",
    "Sack, Gropp: Collective algorithms for multiported torus networks, ACM TOPC 2015",
    servesRectangle,
    writeRectangle,
    exchangesOfRectangle,
    true};

}  // namespace tacc
