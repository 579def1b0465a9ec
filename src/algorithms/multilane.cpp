// Lanes over groups of any sizes: every rank of a group carries its share of what goes between groups.
//
//   There are L lanes, as many as the largest group has ranks. In a group of g ranks lane j is carried by its rank
//   floor(j g / L): with equal groups each rank carries one, a group of one carries all. Groups of 3, 2 and 1 ranks
//   (0-2, 3-4, 5), L = 3:
//     lane 0:  0 3 5      lane 1:  1 3 5      lane 2:  2 4 5
//
//   allreduce   1. reduce-scatter inside each group, in shares of as many blocks as a rank carries lanes
//               2. in every lane by itself, all at once: the same at the next level, at last among all who are left
//               3. allgather inside each group
//   As hierarchical.cpp does with equal groups, where it is the same plan; so here only where some are not.
//
//   broadcast   1. the root hands every lane's blocks to the rank of its group that carries it
//               2. in every lane by itself 4 blocks behind one another go along the line of the groups, from the root's
//                  on in the order of ranks: each carrier hands a block on in the step in which it gets it
//               3. allgather inside each group
//   reduce      the same backwards: reduce-scatter inside each group; the lines add up towards the root's group; there
//               the carriers hand the sums to the root.
//   The groups of broadcast and reduce are the innermost ones of more than one rank.
//
//   G equal groups of g: broadcast, reduce: steps G + ceil(lg g); of a group's uplink N each way, of which each rank
//   carries a g-th; no rank but the root sends or receives more than N, the root (2 - 1/g) N. allreduce: 2 (G-1)/G N
//   over an uplink, steps 2 ceil(lg g) + 2 ceil(lg G).
//
//   J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication. CLUSTER 2020. Lanes
//   over groups that differ, and lines of groups, are our own.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>

#include "algorithms/catalogue.hpp"
#include "algorithms/exchange_phases.hpp"
#include "algorithms/nesting.hpp"
#include "core/index.hpp"

namespace tacc {
namespace {

constexpr int pieces = 4;  // of a lane, in broadcast and reduce

/// How a group of at least `lanes` ranks shares `lanes` lanes.
struct Shares {
  int lanes;
  int ranks;

  int carrierOf(int lane) const { return static_cast<int>(std::int64_t{lane} * ranks / lanes); }
  int firstOf(int member) const { return static_cast<int>((std::int64_t{member} * lanes + ranks - 1) / ranks); }
  /// Where the members' shares begin, and the last one ends, of lanes of `width` blocks from block `first` on.
  std::vector<int> starts(int first, int width) const {
    std::vector<int> starts;
    for (int member = 0; member <= ranks; ++member) starts.push_back(first + firstOf(member) * width);
    return starts;
  }
};

int lanesOf(const NestingLevel& level) { return *std::ranges::max_element(level.sizes); }

/// The members of a level's group number `group` among `members`, and the place in them of the first.
std::span<const int> groupOf(std::span<const int> members, const NestingLevel& level, std::size_t group) {
  const auto begin = std::accumulate(level.sizes.begin(), level.sizes.begin() + static_cast<std::ptrdiff_t>(group), 0);
  return members.subspan(at(begin), at(level.sizes[group]));
}

/// Who carries lane `lane` in each group of a level.
std::vector<int> laneOf(std::span<const int> members, const NestingLevel& level, int lane) {
  std::vector<int> carriers;
  for (std::size_t begin = 0; const int size : level.sizes) {
    carriers.push_back(members[begin + at(Shares{lanesOf(level), size}.carrierOf(lane))]);
    begin += at(size);
  }
  return carriers;
}

std::vector<int> everybody(int ranks) {
  std::vector<int> all(at(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int blocksOf(const std::vector<NestingLevel>& levels) {
  int blocks = 1;
  for (const NestingLevel& level : levels) blocks *= lanesOf(level);
  return blocks;
}

/// The part of one rank in an allreduce.
class LaneAllReduce {
 public:
  LaneAllReduce(const PlanRequest& request, PlanWriter& writer) : levels_(nestingOf(request)), writer_(writer) {}

  void allReduce(int ranks) {
    writer_.cutInto(blocksOf(levels_));
    run(everybody(ranks), 0, blocksOf(levels_), 0, false, 0);
  }

 private:
  /// Of blocks [first, first + count) among `members`, the writer's rank one of them, from level `depth` on.
  void run(std::span<const int> members, int first, int count, std::size_t depth, bool isHeld, int start) {
    if (depth == levels_.size()) return;
    const NestingLevel& level = levels_[depth];
    std::size_t number = 0;
    std::span<const int> group = groupOf(members, level, 0);
    while (std::ranges::find(group, writer_.rank()) == group.end()) group = groupOf(members, level, ++number);
    const int self = static_cast<int>(std::ranges::find(group, writer_.rank()) - group.begin());
    const Shares shares{lanesOf(level), static_cast<int>(group.size())};
    const int width = count / shares.lanes, inner = start + roundsOf(depth);
    const PhaseShape shape{{group.begin(), group.end()}, self, shares.starts(first, width), output};
    circulantPhases.reduceScatter(writer_, shape, isHeld, start,
                                  depth + 1 == levels_.size() ? Sum::complete : Sum::partial);
    for (int lane = shares.firstOf(self); lane < shares.firstOf(self + 1); ++lane)
      run(laneOf(members, level, lane), first + lane * width, width, depth + 1, isHeld || group.size() > 1, inner);
    int after = inner;
    for (std::size_t d = depth + 1; d < levels_.size(); ++d) after += 2 * roundsOf(d);
    circulantPhases.allGather(writer_, shape, after);
  }

  int roundsOf(std::size_t depth) const { return circulantPhases.rounds(lanesOf(levels_[depth])); }

  std::vector<NestingLevel> levels_;
  PlanWriter& writer_;
};

/// Teams in turns such that no rank is in two at a time, and each takes its own in the order in which they are added.
class Turns {
 public:
  explicit Turns(int ranks) : ranks_(ranks), next_(at(ranks), 0) {}

  void add(UnevenTeams::Team team) {
    std::size_t turn = 0;
    for (const int r : team.ranks) turn = std::max(turn, next_[at(r)]);
    for (const int r : team.ranks) next_[at(r)] = turn + 1;
    if (turn == turns_.size()) turns_.push_back(std::make_shared<UnevenTeams>(ranks_));
    turns_[turn]->add(std::move(team));
  }

  /// Round after round of all turns.
  void exchange(bool combines, std::vector<Phase>& phases) const {
    std::vector<std::vector<Exchange>> rounds;
    std::size_t most = 0;
    for (const auto& teams : turns_)
      most = std::max(most, rounds.emplace_back(circulantExchanges(teams, combines)).size());
    for (std::size_t round = 0; round < most; ++round)
      for (std::vector<Exchange>& turn : rounds)
        if (round < turn.size()) phases.emplace_back(std::move(turn[round]));
  }

 private:
  int ranks_;
  std::vector<std::size_t> next_;  // turn of a rank
  std::vector<std::shared_ptr<UnevenTeams>> turns_;
};

Exchanges exchangesOfAllReduce(const PlanRequest& request) {
  struct Line {
    std::vector<int> members;
    int first;
  };
  const std::vector<NestingLevel> levels = nestingOf(request);
  Exchanges all{blocksOf(levels), {}};
  std::vector<Line> lines = {{everybody(request.ranks), 0}};
  std::vector<Turns> turns;
  int width = all.blocks;
  for (const NestingLevel& level : levels) {
    width /= lanesOf(level);
    Turns& own = turns.emplace_back(request.ranks);
    std::vector<Line> inside;
    for (const Line& line : lines) {
      for (std::size_t g = 0; g < level.sizes.size(); ++g) {
        const std::span<const int> group = groupOf(line.members, level, g);
        own.add({{group.begin(), group.end()}, Shares{lanesOf(level), level.sizes[g]}.starts(line.first, width)});
      }
      for (int lane = 0; lane < lanesOf(level); ++lane)
        inside.push_back({laneOf(line.members, level, lane), line.first + lane * width});
    }
    own.exchange(true, all.phases);
    lines = std::move(inside);
  }
  for (std::size_t d = turns.size(); d-- > 0;) turns[d].exchange(false, all.phases);
  return all;
}

/// The groups of a broadcast or reduce, in a line that begins with the root's.
struct Lines {
  NestingLevel level;
  int root;
  std::vector<int> begins = {0};  // of groups
  int home = 0;                   // the root's group
  int lanes = lanesOf(level);

  explicit Lines(const PlanRequest& request) : level(nestingOf(request).front()), root(request.root) {
    for (const int size : level.sizes) begins.push_back(begins.back() + size);
    home = groupWith(root);
  }

  int groups() const { return static_cast<int>(level.sizes.size()); }
  int groupWith(int rank) const {
    return static_cast<int>(std::ranges::upper_bound(begins, rank) - begins.begin()) - 1;
  }
  Shares sharesOf(int group) const { return {lanes, level.sizes[at(group)]}; }
  /// The carrier in the group at a place of the line.
  int carrierAt(int place, int lane) const {
    const int group = wrap(home + place, groups());
    return begins[at(group)] + sharesOf(group).carrierOf(lane);
  }
  std::vector<int> ranksOf(int group) const {
    std::vector<int> ranks(at(level.sizes[at(group)]));
    std::iota(ranks.begin(), ranks.end(), begins[at(group)]);
    return ranks;
  }
};

/// The part of one rank in a broadcast or reduce.
class LaneLines {
 public:
  LaneLines(const PlanRequest& request, PlanWriter& writer)
      : lines_(request), r_(writer.rank()), group_(lines_.groupWith(r_)), writer_(writer) {
    writer_.cutInto(lines_.lanes * pieces);
  }

  void broadcast() {
    constexpr int start = 2;  // of the lines, when the carriers beside the root have what it handed out
    const bool isRoot = r_ == lines_.root;
    if (isRoot || place_ == 0) {
      for (int lane = 0; lane < lines_.lanes; ++lane) {
        const int carrier = lines_.carrierAt(0, lane), block = lane * pieces;
        if (isRoot && carrier != r_) writer_.step(0, block, pieces, {input(block)}, {peer(carrier)});
        if (!isRoot && carrier == r_) writer_.step(1, block, pieces, {peer(lines_.root)}, {output(block)});
      }
    }
    const int last = lines_.groups() - 1;
    forOwnBlocks([&](int lane, int piece, int block) {
      if (place_ == 0 && last == 0 && !isRoot) return;  // it has it, and nobody else needs it in this way
      std::vector<Operand> destinations;
      if (place_ > 0 || isRoot) destinations.push_back(output(block));
      if (place_ < last) destinations.push_back(peer(lines_.carrierAt(place_ + 1, lane)));
      const Operand source = place_ > 0 ? peer(lines_.carrierAt(place_ - 1, lane))
                             : isRoot   ? input(block)
                                        : output(block);
      writer_.step(start + place_ + piece, block, 1, {source}, destinations);
    });
    circulantPhases.allGather(writer_, shape(output), start + last + pieces);
  }

  void reduce() {
    const bool isRoot = r_ == lines_.root;
    const auto held = isRoot ? output : scratch;
    const int members = lines_.level.sizes[at(group_)], last = lines_.groups() - 1;
    const int start = circulantPhases.rounds(lines_.lanes), end = start + last + (last > 0 ? pieces : 0);
    if (!isRoot) writer_.needScratch(lines_.lanes * pieces);
    circulantPhases.reduceScatter(writer_, shape(held), false, 0, last == 0 ? Sum::complete : Sum::partial);
    forOwnBlocks([&](int lane, int piece, int block) {
      if (last == 0) return;
      const Operand own = members > 1 ? held(block) : input(block);
      const Operand to = place_ == 0 ? held(block) : peer(lines_.carrierAt(place_ - 1, lane));
      std::vector<Operand> sources = {own};
      if (place_ < last) {
        const int next = lines_.carrierAt(place_ + 1, lane);
        sources = lowerFirst(r_, own, next, peer(next));
      }
      writer_.step(start + last - place_ + piece, block, 1, sources, {to}, place_ == 0 ? Sum::complete : Sum::partial);
    });
    if (place_ != 0) return;
    for (int lane = 0; lane < lines_.lanes; ++lane) {
      const int carrier = lines_.carrierAt(0, lane), block = lane * pieces;
      if (isRoot && carrier != r_) writer_.step(end + 1, block, pieces, {peer(carrier)}, {output(block)});
      if (!isRoot && carrier == r_) writer_.step(end, block, pieces, {scratch(block)}, {peer(lines_.root)});
    }
  }

 private:
  PhaseShape shape(Operand (*held)(int)) const {
    return {lines_.ranksOf(group_), self_, lines_.sharesOf(group_).starts(0, pieces), held};
  }

  /// visit(lane, piece, block) for the lanes that the rank carries.
  template <class Visit>
  void forOwnBlocks(const Visit& visit) const {
    const Shares shares = lines_.sharesOf(group_);
    for (int lane = shares.firstOf(self_); lane < shares.firstOf(self_ + 1); ++lane)
      for (int piece = 0; piece < pieces; ++piece) visit(lane, piece, lane * pieces + piece);
  }

  Lines lines_;
  int r_;
  int group_;
  int self_ = r_ - lines_.begins[at(group_)];                // its place in the group
  int place_ = wrap(group_ - lines_.home, lines_.groups());  // and the group's in the line
  PlanWriter& writer_;
};

Exchanges exchangesOfLines(const PlanRequest& request) {
  const Lines lines(request);
  const bool isDown = request.collective == Collective::broadcast;
  TreeExchange ends;  // between the root and the carriers beside it
  ends.isDown = isDown;
  ends.oneByOne = true;
  ends.blocks = pieces;
  TreeExchange along;
  along.isDown = isDown;
  along.combines = !isDown;
  along.messages = pieces;
  const auto edge = std::make_shared<const Tree>(std::vector{-1, 0}, 0);
  std::vector<int> before(at(lines.groups()));
  std::iota(before.begin(), before.end(), -1);
  const auto line = std::make_shared<const Tree>(before, 0);
  for (int lane = 0; lane < lines.lanes; ++lane) {
    std::vector<int> carriers;
    for (int place = 0; place < lines.groups(); ++place) carriers.push_back(lines.carrierAt(place, lane));
    if (carriers[0] != request.root) ends.trees.push_back({edge, {request.root, carriers[0]}});
    if (carriers.size() > 1) along.trees.push_back({line, std::move(carriers)});
  }
  Turns inside(request.ranks);
  for (int group = 0; group < lines.groups(); ++group)
    inside.add({lines.ranksOf(group), lines.sharesOf(group).starts(0, pieces)});
  Exchanges all{lines.lanes * pieces, {}};
  if (!isDown) inside.exchange(true, all.phases);
  if (isDown && !ends.trees.empty()) all.phases.emplace_back(ends);
  if (!along.trees.empty()) all.phases.emplace_back(along);
  if (!isDown && !ends.trees.empty()) all.phases.emplace_back(ends);
  if (isDown) inside.exchange(false, all.phases);
  return all;
}

bool serves(const PlanRequest& request) {
  if (request.ranks < 1 || request.groups.empty() || !groupsFit(request)) return false;
  if (request.collective == Collective::allReduce) return !isEven(nestingOf(request));
  return isOneOf(request.collective, {Collective::broadcast, Collective::reduce});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  if (request.collective == Collective::allReduce) return LaneAllReduce(request, writer).allReduce(request.ranks);
  LaneLines lines(request, writer);
  if (request.collective == Collective::broadcast) return lines.broadcast();
  lines.reduce();
}

Exchanges exchanges(const PlanRequest& request) {
  return request.collective == Collective::allReduce ? exchangesOfAllReduce(request) : exchangesOfLines(request);
}

}  // namespace

constinit const Algorithm multilaneAlgorithm = {
    "multilane",
    "Every rank of a group carries a share of what goes between groups, whatever their sizes; needs groups.",
    "Träff, Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020",
    serves,
    write,
    exchanges,
    true};

}  // namespace tacc
