#include "algorithms/butterfly.hpp"

#include <algorithm>
#include <numeric>

#include "algorithms/fold.hpp"

namespace tacc {

Butterfly::Butterfly(int size, Partner partner, const std::vector<int>& dimensions)
    : size_(size), partner_(partner), dimensions_(dimensions), blocks_(static_cast<std::size_t>(size), 0) {
  while ((1 << levels_) < size) ++levels_;
  // sides[v]: the lowest place that v can still meet, or that those can meet, in the levels after l.
  std::vector<int> sides(static_cast<std::size_t>(size)), joined(sides.size());
  std::iota(sides.begin(), sides.end(), 0);
  for (int l = levels_ - 1; l >= 0; --l) {
    for (int v = 0; v < size; ++v) {
      const int mine = sides[v], theirs = sides[partner(v, l, size, dimensions)];
      if (mine > theirs) blocks_[v] += size >> (l + 1);
      joined[v] = std::min(mine, theirs);
    }
    sides.swap(joined);
  }
}

/// What is kept in a level are the blocks that agree with the last one in this number of the highest bits.
Butterfly::Level Butterfly::level(int place, int l) const {
  const int half = size_ >> (l + 1);
  const int keep = blockOf(place) / half * half;
  return {partner_(place, l, size_, dimensions_), keep, keep ^ half, half};
}

bool Butterfly::isInOrder() const {
  for (int place = 0; place < size_; ++place)
    if (blockOf(place) != place) return false;
  return true;
}

namespace {

void allReduce(const PlanRequest& request, Butterfly::Partner partner, PlanWriter& writer) {
  const int r = writer.rank();
  const Fold fold(request.ranks);
  const int blocks = fold.size();
  const Butterfly butterfly(blocks, partner, request.dimensions);
  const int count = butterfly.levels();
  const int start = fold.needed() ? 2 : 0;
  const int last = start + 4 * count;
  writer.cutInto(blocks);
  if (fold.sitsOut(r)) {
    writer.step(0, 0, blocks, {input(0)}, {peer(r + 1)});
    return writer.step(last, 0, blocks, {peer(r + 1)}, {output(0)});
  }
  const int v = fold.virtualOf(r);
  const auto partnerOf = [&](int l) { return fold.rankOf(butterfly.level(v, l).partner); };
  bool inOutput = fold.actsForTwo(r);
  const auto partial = [&](int block) { return inOutput ? output(block) : input(block); };

  if (inOutput) writer.step(1, 0, blocks, {peer(r - 1), input(0)}, {output(0)});
  for (int l = 0; l < count; ++l) {
    const Butterfly::Level level = butterfly.level(v, l);
    const int other = partnerOf(l);
    const int round = start + 2 * l;
    writer.step(round, level.send, level.half, {partial(level.send)}, {peer(other)});
    std::vector<Operand> destinations = {output(level.keep)};
    if (l == count - 1) destinations.push_back(peer(other));  // the first exchange of the allgather
    writer.step(round + 1, level.keep, level.half, lowerFirst(r, partial(level.keep), other, peer(other)), destinations,
                l == count - 1 ? Sum::complete : Sum::partial);
    inOutput = true;
  }
  int round = start + 2 * count;
  for (int l = count - 1; l >= 0; --l, round += 2) {
    const Butterfly::Level level = butterfly.level(v, l);
    writer.step(round, level.send, level.half, {peer(partnerOf(l))}, {output(level.send)});
    if (l > 0) {
      const int all = butterfly.level(v, l - 1).keep;
      writer.step(round + 1, all, 2 * level.half, {output(all)}, {peer(partnerOf(l - 1))});
    }
  }
  if (fold.actsForTwo(r)) writer.step(last - 1, 0, blocks, {output(0)}, {peer(r - 1)});
}

/// Rank r's block stands at place blockOf(r) of the butterfly's order.
class Stacks {
 public:
  Stacks(const PlanRequest& request, Butterfly::Partner partner, PlanWriter& writer)
      : p_(request.ranks),
        r_(writer.rank()),
        butterfly_(p_, partner, request.dimensions),
        rankAt_(static_cast<std::size_t>(p_)),
        inOrder_(butterfly_.isInOrder()),
        writer_(writer) {
    for (int r = 0; r < p_; ++r) rankAt_[butterfly_.blockOf(r)] = r;
  }

  /// In order: partial results lie in scratch, which begins with the first block that the rank keeps, and the first
  /// level works on the input. Else all blocks are copied to scratch first.
  void reduceScatter() {
    const int count = butterfly_.levels();
    if (!inOrder_) writer_.needScratch(p_);
    if (inOrder_ && p_ > 2) writer_.needScratch(p_ / 2);
    const int start = inOrder_ ? 0 : 1;
    if (!inOrder_) copyBlocks(0, 0, p_, [](int block, int place) { return Copy{input(block), scratch(place)}; });
    const int base = inOrder_ ? butterfly_.level(r_, 0).keep : 0;
    for (int l = 0; l < count; ++l) {
      const Butterfly::Level level = butterfly_.level(r_, l);
      const auto partial = [&](int block) { return l > 0 || !inOrder_ ? scratch(block - base) : input(block); };
      const int round = start + 2 * l;
      const bool isLast = l == count - 1;
      writer_.step(round, 0, level.half, {partial(level.send)}, {peer(level.partner)});
      writer_.step(round + 1, 0, level.half, lowerFirst(r_, partial(level.keep), level.partner, peer(level.partner)),
                   {isLast ? output(0) : scratch(level.keep - base)}, isLast ? Sum::complete : Sum::partial);
    }
  }

  /// What came is sent on, and copied to its place in the output, in the round after.
  void allGather() {
    if (!inOrder_) writer_.needScratch(p_);
    const int own = butterfly_.blockOf(r_);
    const auto held = [&](int place) { return inOrder_ ? output(place) : scratch(place); };
    std::vector<Operand> destinations = {output(r_), peer(butterfly_.level(r_, butterfly_.levels() - 1).partner)};
    if (!inOrder_) destinations.push_back(scratch(own));
    writer_.step(0, 0, 1, {input(0)}, destinations);
    int round = 1;
    for (int l = butterfly_.levels() - 1; l >= 0; --l, round += 2) {
      const Butterfly::Level level = butterfly_.level(r_, l);
      writer_.step(round, 0, level.half, {peer(level.partner)}, {held(level.send)});
      if (l > 0) {
        const Butterfly::Level outer = butterfly_.level(r_, l - 1);
        writer_.step(round + 1, 0, 2 * level.half, {held(outer.keep)}, {peer(outer.partner)});
      }
      if (!inOrder_)
        copyBlocks(round + 1, level.send, level.half, [](int block, int place) {
          return Copy{scratch(place), output(block)};
        });
    }
  }

 private:
  struct Copy {
    Operand from, to;
  };

  /// Copies `count` blocks from place `first` on between a buffer in the order of ranks and scratch.
  template <class Make>
  void copyBlocks(int round, int first, int count, Make make) {
    for (int place = first, run = 1; place < first + count; place += run) {
      for (run = 1; place + run < first + count && rankAt_[place + run] == rankAt_[place] + run;) ++run;
      const Copy copy = make(rankAt_[place], place);
      writer_.step(round, 0, run, {copy.from}, {copy.to});
    }
  }

  int p_;
  int r_;
  Butterfly butterfly_;
  std::vector<int> rankAt_;
  bool inOrder_;
  PlanWriter& writer_;
};

}  // namespace

void writeButterfly(const PlanRequest& request, Butterfly::Partner partner, PlanWriter& writer) {
  if (request.collective == Collective::allReduce) return allReduce(request, partner, writer);
  Stacks stacks(request, partner, writer);
  if (request.collective == Collective::reduceScatter) return stacks.reduceScatter();
  stacks.allGather();
}

Exchanges exchangesOfButterfly(const PlanRequest& request, Butterfly::Partner partner) {
  const Fold fold(request.ranks);
  const bool isAllReduce = request.collective == Collective::allReduce;
  const int size = fold.size();
  int levels = 0;
  while ((1 << levels) < size) ++levels;
  const bool copies = !isAllReduce && !Butterfly(size, partner, request.dimensions).isInOrder();
  Exchanges all{isAllReduce ? size : 1, {}};
  const auto level = [&](int l, bool combines) {
    Exchange exchange;
    exchange.to = [=, dimensions = request.dimensions](int r) {
      return fold.sitsOut(r) ? r : fold.rankOf(partner(fold.virtualOf(r), l, size, dimensions));
    };
    exchange.blocks = size >> (l + 1);
    exchange.combines = combines;
    // In an allgather what came before.
    if (copies && !combines) exchange.copiesMeanwhile = (size >> (l + 1)) / 2;
    all.phases.emplace_back(std::move(exchange));
  };
  if (fold.needed()) all.phases.emplace_back(fold.before(size));
  if (request.collective == Collective::reduceScatter && copies) all.phases.emplace_back(Copy{size});
  for (int l = 0; request.collective != Collective::allGather && l < levels; ++l) level(l, true);
  for (int l = levels - 1; request.collective != Collective::reduceScatter && l >= 0; --l) level(l, false);
  if (request.collective == Collective::allGather && copies) all.phases.emplace_back(Copy{size / 2});
  if (fold.needed()) all.phases.emplace_back(fold.after(size));
  return all;
}

}  // namespace tacc
