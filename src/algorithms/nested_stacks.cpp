#include "algorithms/nested_stacks.hpp"

#include <algorithm>

#include "algorithms/nesting.hpp"

namespace tacc {
namespace {

/// A rank's place: at the level with groups of n and `stride` ranks between neighbours, its neighbours are in a ring of
/// those with the same number modulo stride and above n * stride.
struct Ring {
  int n;
  int stride;

  int placeOf(int r) const { return r / stride % n; }
  int rankAt(int r, int distance) const { return r + (wrap(placeOf(r) + distance, n) - placeOf(r)) * stride; }
};

/// Innermost first.
std::vector<Ring> ringsOf(const PlanRequest& request) {
  std::vector<Ring> rings;
  int stride = 1;
  for (const NestingLevel& level : nestingOf(request)) {
    rings.push_back({level.sizes[0], stride});
    stride *= level.sizes[0];
  }
  return rings;
}

class NestedStacks {
 public:
  NestedStacks(const PlanRequest& request, PlanWriter& writer)
      : p_(request.ranks), r_(writer.rank()), rings_(ringsOf(request)), writer_(writer) {}

  /// Ring k adds up the blocks of all ranks of its lane; those of the own lane stay, for the next ring.
  void reduceScatter() {
    if (rings_.size() > 1) writer_.needScratch(p_ / rings_[0].n);
    int start = 0;
    for (std::size_t k = 0; k < rings_.size(); ++k) {
      const Ring& ring = rings_[k];
      const bool isLastRing = k + 1 == rings_.size();
      const int next = ring.rankAt(r_, 1), previous = ring.rankAt(r_, -1);
      for (int step = 0; step < ring.n; ++step) {
        const bool isLast = step == ring.n - 1;
        forLane(ring, ring.rankAt(r_, -1 - step), [&](int block) {
          const Operand own = k == 0 ? input(block) : scratch(block / rings_[0].n);
          const Operand kept = isLastRing ? output(0) : scratch(block / rings_[0].n);
          writer_.step(start + step, 0, 1,
                       step == 0 ? std::vector<Operand>{own} : lowerFirst(previous, peer(previous), r_, own),
                       {isLast ? kept : peer(next)}, isLast && isLastRing ? Sum::complete : Sum::partial);
        });
      }
      start += ring.n;
    }
  }

  /// Backwards: ring k hands out the blocks of all lanes inside it.
  void allGather() {
    int start = 0;
    for (std::size_t k = rings_.size(); k-- > 0;) {
      const Ring& ring = rings_[k];
      const bool first = k + 1 == rings_.size();
      const int next = ring.rankAt(r_, 1), previous = ring.rankAt(r_, -1);
      for (int step = 0; step < ring.n; ++step) {
        forLane(ring, ring.rankAt(r_, -step), [&](int block) {
          std::vector<Operand> destinations;
          if (step > 0 || first) destinations.push_back(output(block));
          if (step < ring.n - 1) destinations.push_back(peer(next));
          const Operand held = first ? input(0) : output(block);
          writer_.step(start + step, 0, 1, {step == 0 ? held : peer(previous)}, destinations);
        });
      }
      start += ring.n;
    }
  }

 private:
  /// The blocks that `r` still has to do with after `ring`: of all ranks that differ from it further out only.
  template <class Visit>
  void forLane(const Ring& ring, int r, const Visit& visit) const {
    const int period = ring.n * ring.stride;
    for (int block = r % period; block < p_; block += period) visit(block);
  }

  int p_;
  int r_;
  std::vector<Ring> rings_;
  PlanWriter& writer_;
};

}  // namespace

void writeNestedStacks(const PlanRequest& request, PlanWriter& writer) {
  NestedStacks stacks(request, writer);
  if (request.collective == Collective::allGather) return stacks.allGather();
  stacks.reduceScatter();
}

Exchanges exchangesOfNestedStacks(const PlanRequest& request) {
  const bool combines = request.collective == Collective::reduceScatter;
  Exchanges all;
  for (const Ring& ring : ringsOf(request)) {
    Exchange once;
    once.to = [ring](int r) { return ring.rankAt(r, 1); };
    once.blocks = once.messages = request.ranks / (ring.n * ring.stride);
    once.repeats = ring.n - 1;
    once.combines = combines;
    once.flows = true;
    all.phases.emplace_back(std::move(once));
  }
  if (!combines) std::ranges::reverse(all.phases);
  return all;
}

}  // namespace tacc
