// PAT: parallel aggregated trees. Allgather with the farthest partner first, while there is little to send.
//
//   Every rank's block goes down a binomial tree of its own, all trees at once: block q is at ranks q + o for more and
//   more offsets o. Distances d = 2^(L-1), ..., 2, 1 with 2^L >= p: rank r sends all blocks that it has to r + d and
//   receives as many from r - d, unless their offset would be p or more. So the first messages, of one block, go far,
//   and the last ones, of half of all blocks, go to the neighbour. Reduce-scatter is the same backwards, nearest first.
//
//   p = 8, offsets that a rank has:        p = 6 (offsets 6 and 7 are left out):
//     d = 4   0        receives 4            0          receives 4
//     d = 2   0 4      receives 2 6          0 4        receives 2
//     d = 1   0 4 2 6  receives 1 5 3 7      0 4 2      receives 1 5 3
//
//   Blocks lie in scratch in the order in which they come, so a message is one range (two where the one offset that is
//   too large stands inside). They are copied between scratch and the buffer in the order of ranks.
//
//   Steps: ceil(lg p). Bytes: p-1 blocks each way, the bound; p blocks of scratch.
//
//   S. Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations at scale. arXiv 2506.20252 (2025).
#include <algorithm>
#include <utility>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

/// Slots [first, first + count) are sent; they become slots [to, to + count).
struct Range {
  int first;
  int to;
  int count;
};

struct PatLevel {
  int distance;
  std::vector<Range> ranges;
};

/// What all ranks do alike, and the offset of the block in each slot of scratch.
struct Levels {
  std::vector<PatLevel> levels;
  std::vector<int> offsets = {0};

  explicit Levels(int p) {
    int distance = 1;
    while (2 * distance < p) distance *= 2;
    for (; distance >= 1; distance /= 2) {
      PatLevel level{distance, {}};
      const int held = static_cast<int>(offsets.size());
      for (int slot = 0; slot < held; ++slot) {
        if (offsets[slot] + distance >= p) continue;
        const int to = static_cast<int>(offsets.size());
        if (!level.ranges.empty() && level.ranges.back().first + level.ranges.back().count == slot) {
          ++level.ranges.back().count;
        } else {
          level.ranges.push_back({slot, to, 1});
        }
        offsets.push_back(offsets[slot] + distance);
      }
      levels.push_back(level);
    }
  }
};

class Pat {
 public:
  Pat(int p, PlanWriter& writer) : p_(p), r_(writer.rank()), shape_(p), writer_(writer) { writer_.needScratch(p_); }

  /// Level k sends in round 2k and receives in round 2k + 1; what came is copied to its place in the round after.
  void allGather() {
    std::vector<Operand> destinations = {output(r_), peer(wrap(r_ + levels_[0].distance, p_))};
    if (p_ > 2) destinations.push_back(scratch(0));
    writer_.step(0, 0, 1, {input(0)}, destinations);
    int round = 0;
    for (std::size_t k = 0; k < levels_.size(); ++k, round += 2) {
      const PatLevel& level = levels_[k];
      const Operand to = peer(wrap(r_ + level.distance, p_)), from = peer(wrap(r_ - level.distance, p_));
      if (k > 0) {
        for (const Range& range : level.ranges) writer_.step(round, 0, range.count, {scratch(range.first)}, {to});
        copyToOutput(round, levels_[k - 1]);
      }
      for (const Range& range : level.ranges) writer_.step(round + 1, 0, range.count, {from}, {scratch(range.to)});
    }
    copyToOutput(round, levels_.back());
  }

  /// Backwards, after a copy of all blocks to their slots: what allGather would have received is sent, and what comes
  /// is added to what it would have sent.
  void reduceScatter() {
    for (int slot = 0; slot < p_; ++slot) writer_.step(0, 0, 1, {input(ownerOf(slot))}, {scratch(slot)});
    int round = 1;
    for (std::size_t k = levels_.size(); k-- > 0; round += 2) {
      const PatLevel& level = levels_[k];
      const int to = wrap(r_ - level.distance, p_);
      const int from = wrap(r_ + level.distance, p_);
      for (const Range& range : level.ranges) writer_.step(round, 0, range.count, {scratch(range.to)}, {peer(to)});
      for (const Range& range : level.ranges)
        writer_.step(round + 1, 0, range.count, lowerFirst(r_, scratch(range.first), from, peer(from)),
                     {k == 0 ? output(0) : scratch(range.first)}, k == 0 ? Sum::complete : Sum::partial);
    }
  }

 private:
  void copyToOutput(int round, const PatLevel& level) {
    for (const Range& range : level.ranges) {
      for (int i = 0; i < range.count; ++i)
        writer_.step(round, 0, 1, {scratch(range.to + i)}, {output(ownerOf(range.to + i))});
    }
  }

  int ownerOf(int slot) const { return wrap(r_ - shape_.offsets[slot], p_); }

  int p_;
  int r_;
  Levels shape_;
  PlanWriter& writer_;
  const std::vector<PatLevel>& levels_ = shape_.levels;
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && isOneOf(request.collective, {Collective::allGather, Collective::reduceScatter});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  Pat pat(request.ranks, writer);
  if (request.collective == Collective::allGather) return pat.allGather();
  pat.reduceScatter();
}

Exchanges exchanges(const PlanRequest& request) {
  const int p = request.ranks;
  const bool gathers = request.collective == Collective::allGather;
  Exchanges all;
  int before = 0;  // blocks that came in the level before
  for (const PatLevel& level : Levels(p).levels) {
    MessageCut cut;
    int blocks = 0;
    for (const Range& range : level.ranges) {
      cut.blocks[static_cast<std::size_t>(cut.count++)] = range.count;
      blocks += range.count;
    }
    Exchange exchange = shiftBy(gathers ? level.distance : -level.distance, p, blocks, !gathers);
    exchange.cut = [cut](int) { return cut; };
    if (gathers) exchange.copiesMeanwhile = std::exchange(before, blocks);
    all.phases.emplace_back(std::move(exchange));
  }
  if (gathers) {
    all.phases.emplace_back(Copy{before});
  } else {
    all.phases.emplace_back(Copy{p});
    std::ranges::reverse(all.phases);
  }
  return all;
}

}  // namespace

constinit const Algorithm patAlgorithm = {
    "pat",
    "A binomial tree for every block, all at once, far partners while messages are small: lg p steps for any p.",
    "Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations at scale, arXiv 2506.20252",
    serves,
    write,
    exchanges};

}  // namespace tacc
