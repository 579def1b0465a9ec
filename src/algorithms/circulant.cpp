// Circulant graph (Träff): reduce-scatter and allgather in ceil(lg p) steps for every p, with no fold.
//
//   Skips: s_0 = p, s_{k+1} = ceil(s_k / 2), down to 1. Block i of rank r is meant relative to r: it is block
//   (r + i) mod p of the vector.
//   Reduce-scatter, level k, with s = s_k and h = s_{k+1}: rank r sends its partial results [h, s) to rank r + h and
//   adds what comes from rank r - h to its own [0, s - h). So after level k only [0, h) matters, and at the end block 0
//   of r, which is block r of the vector, is complete.
//   The allgather is the same backwards: rank r receives [h, s) from r + h and sends [0, s - h) to r - h.
//
//   p = 17: skips 17, 9, 5, 3, 2, 1.
//     level          0         1       2       3       4
//     h              9         5       3       2       1
//     sent         [9,17)    [5,9)   [3,5)   [2,3)   [1,2)      8 + 4 + 2 + 1 + 1 = p - 1 blocks
//     added to     [0,8)     [0,4)   [0,2)   [0,1)   [0,1)
//
//   Steps: ceil(lg p), allreduce 2 ceil(lg p). Bytes per rank: exactly p-1 blocks each way, allreduce 2 (p-1)/p N: the
//   bound. Contributions are combined in an order that differs from block to block, so the operation must commute.
//
//   Notes on memory. Level 0 adds to the t = floor(p/2) first blocks; the rest is only ever sent as it was in the
//   input, so it is sent from there. Ranges are cut where block numbers wrap round at p, equally on both sides.
//
//   J. L. Träff: Optimal, non-pipelined reduce-scatter and allreduce algorithms. Preprint (2025), doi 10.34726/10760.

#include "algorithms/block_runs.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

class Circulant {
 public:
  Circulant(const PlanRequest& request, PlanWriter& writer)
      : collective_(request.collective),
        p_(request.ranks),
        stacked_(partitionOf(request.collective) == Partition::stack),
        touched_(request.ranks / 2),
        writer_(writer) {
    for (int s = p_; s > 1; s = (s + 1) / 2) skips_.push_back(s);
    skips_.push_back(1);
    levels_ = static_cast<int>(skips_.size()) - 1;
  }

  void write() {
    const int r = writer_.rank();
    writer_.cutInto(stacked_ ? 1 : p_);
    if (collective_ == Collective::allGather) {
      writer_.step(0, 0, 1, {input(0)}, {output(r), peer(wrap(r - 1, p_))});
      return allGather(r, 1);
    }
    if (stacked_ && p_ > 2) writer_.needScratch(touched_);
    reduceScatter(r);
    if (collective_ == Collective::allReduce) allGather(r, 2 * levels_);
  }

 private:
  int absolute(int r, int i) const { return wrap(r + i, p_); }

  /// Where rank r keeps the partial result of its relative block i after level 0.
  Operand partial(int r, int i) const {
    if (i >= touched_) return input(absolute(r, i));
    return stacked_ ? scratch(i) : output(absolute(r, i));
  }

  /// Level k sends in round 2k and receives in round 2k + 1.
  void reduceScatter(int r) {
    for (int k = 0; k < levels_; ++k) {
      const int s = skips_[k];
      const int h = skips_[k + 1];
      const int to = wrap(r + h, p_);
      const int from = wrap(r - h, p_);
      // Numbers wrap at relative block p - r here, and at p - from (mod p) as the sender counts.
      for (const BlockRun& run : cutAt(h, s, wrapsAt(r, k), k > 0 ? touched_ : s)) {
        const Operand source = k > 0 ? partial(r, run.first) : input(absolute(r, run.first));
        writer_.step(2 * k, absolute(r, run.first), run.count, {source}, {peer(to)});
      }
      for (const BlockRun& run : cutAt(h, s, wrapsAt(from, k), k > 0 ? touched_ : s)) {
        const int first = run.first - h;
        const Operand own = k > 0 ? partial(r, first) : input(absolute(r, first));
        std::vector<Operand> destinations = {partial(r, first)};
        if (k == levels_ - 1) {
          destinations = {stacked_ ? output(0) : output(r)};
          if (!stacked_) destinations.push_back(peer(from));  // opens the allgather
        }
        writer_.step(2 * k + 1, absolute(r, first), run.count, lowerFirst(r, own, from, peer(from)), destinations,
                     k == levels_ - 1 ? Sum::complete : Sum::partial);
      }
    }
  }

  /// Complete blocks, all in output. The last level's receive is in round `start`; its send was in the round before.
  void allGather(int r, int start) {
    int round = start;
    for (int k = levels_ - 1; k >= 0; --k, round += 2) {
      const int s = skips_[k];
      const int h = skips_[k + 1];
      const int from = wrap(r + h, p_);
      for (const BlockRun& run : cutAt(h, s, p_ - r, s)) {
        const int first = absolute(r, run.first);
        writer_.step(round, first, run.count, {peer(from)}, {output(first)});
      }
      if (k == 0) continue;
      const int to = wrap(r - s, p_);
      for (const BlockRun& run : cutAt(0, skips_[k - 1] - s, p_ - r, s)) {
        const int first = absolute(r, run.first);
        writer_.step(round + 1, first, run.count, {output(first)}, {peer(to)});
      }
    }
  }

  /// The relative block of rank r with which the numbers in memory start again at 0; scratch does not wrap.
  int wrapsAt(int r, int level) const { return stacked_ && level > 0 ? p_ : p_ - r; }

  Collective collective_;
  int p_;
  bool stacked_;
  int touched_;  // t
  PlanWriter& writer_;
  std::vector<int> skips_;
  int levels_ = 0;
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::allGather, Collective::reduceScatter});
}

void write(const PlanRequest& request, PlanWriter& writer) { Circulant(request, writer).write(); }

/// In what levels send, the numbers in memory start again where a rank's range goes round; and sums lie elsewhere than
/// what is only sent on.
Exchanges exchanges(const PlanRequest& request) {
  const int p = request.ranks, touched = p / 2;
  const bool isStacked = partitionOf(request.collective) == Partition::stack;
  Exchanges all{isStacked ? 1 : p, {}};
  std::vector<int> skips = {p};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  const std::size_t levels = skips.size() - 1;
  for (std::size_t k = 0; request.collective != Collective::allGather && k < levels; ++k) {
    const int s = skips[k], h = skips[k + 1], edge = k > 0 ? touched : s;
    const bool wraps = !isStacked || k == 0;
    Exchange level = shiftBy(h, p, s - h, true);
    level.cut = [=](int r) { return messagesOf(cutAt(h, s, wraps ? p - r : p, edge)); };
    all.phases.emplace_back(std::move(level));
  }
  for (std::size_t k = levels; request.collective != Collective::reduceScatter && k-- > 0;) {
    const int s = skips[k], h = skips[k + 1];
    Exchange level = shiftBy(-h, p, s - h, false);
    level.cut = [=](int r) { return messagesOf(cutAt(0, s - h, p - r, h)); };
    all.phases.emplace_back(std::move(level));
  }
  return all;
}

}  // namespace

constinit const Algorithm circulantAlgorithm = {
    "circulant",
    "Exchanges on a circulant graph: ceil(lg p) or twice as many steps and fewest bytes, for every p alike.",
    "Träff: Optimal, non-pipelined reduce-scatter and allreduce algorithms, doi 10.34726/10760",
    serves,
    write,
    exchanges};

}  // namespace tacc
