#include "selection/cost_model.hpp"

#include <array>
#include <cmath>

#include "algorithms/fold.hpp"
#include "algorithms/nesting.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/shapes.hpp"
#include "selection/cost_load.hpp"

namespace tacc {
namespace {

constexpr int chainBlocks = 8, pipelineBlocks = 16;

using Exchange = CostLoad::Exchange;
using TreeLoad = CostLoad::TreeLoad;

/// One request, for one chunk of `n` bytes (split: of the vector; stack: of a block).
struct Pricing {
  const PlanRequest& request;
  CostLoad& load;
  double n;

  int p() const { return request.ranks; }
  bool is(Collective collective) const { return request.collective == collective; }
  /// Combined by a receiver of so many bytes in this phase.
  double sum(double bytes) const { return isReduction(request.collective) ? bytes : 0; }
  bool reduces() const { return is(Collective::allReduce) || is(Collective::reduceScatter); }
  bool gathers() const { return is(Collective::allReduce) || is(Collective::allGather); }

  void oneshot() {
    switch (request.collective) {
      case Collective::broadcast:
      case Collective::scatter:
        return rooted(false);
      case Collective::reduce:
      case Collective::gather:
        return rooted(true);
      default:
        if (is(Collective::allToAll)) load.local(n);
        load.everyToEvery(n, sum(n) * (p() - 1), is(Collective::allToAll) || is(Collective::reduceScatter));
    }
  }

  void rooted(bool up) {
    load.doNotHold();
    if (is(Collective::scatter)) load.local(n);
    const bool oneByOne = is(Collective::scatter) || is(Collective::gather);
    up ? load.everyToRoot(request.root, n, sum(n) * (p() - 1), oneByOne) : load.rootToEvery(request.root, n, oneByOne);
  }

  void twoshot() {
    const double part = is(Collective::broadcast) ? n / std::max(1, p() - 1) : n / p();
    if (is(Collective::broadcast)) {
      // The root sends all of the data, then the others do: the same amount, so one of the two is all of the load.
      CostLoad first(load.map());
      first.rootToEvery(request.root, part, true);
      load.wait(first.path());
      if (p() > 2) load.everyToEvery(part, 0, false);
      if (p() == 2) load.atPort(request.root, n, 0);
      // Most messages have come, and are handled, before the last one is over.
      load.wait(-std::min((p() - 2) * load.map().machine().overhead, n / load.map().port()));
      return;
    }
    load.everyToEvery(part, part * (p() - 1), true);
    is(Collective::reduce) ? load.everyToRoot(request.root, part, 0, true) : load.everyToEvery(part, 0, false);
  }

  void parameterServer() {
    load.everyToRoot(0, n, n * (p() - 1), false);
    load.rootToEvery(0, n, false);
  }

  /// Rings over those who differ at one level of groups: `stride` ranks apart, `count` of them.
  void ringPhase(int count, int stride, double bytes, double messages, bool combines) {
    const auto to = [=](int r) {
      const int place = r / stride % count;
      return r + (place + 1 == count ? 1 - count : 1) * stride;
    };
    load.exchange({count - 1.0, bytes, messages, combines ? bytes : 0, true}, to);
  }

  /// A range of blocks wraps round for some ranks, which then send it as two messages; the others wait for some of
  /// them.
  static double messagesOf(int blocks) { return blocks > 1 ? 1.4 : 1; }

  /// Ranks whose ranges wrap round combine the first part while the second is on its way, and are ahead of the others
  /// when the allgather begins. Their long messages then share ports with the short ones that others wait for: of
  /// `count` ranks with `bytes` each the allgather takes up to nearly twice as long.
  void circulantSkew(int count, double bytes) {
    if (load.map().machine().gamma > 0) load.wait(std::max(0.0, 0.9 * (1 - 3.0 / count)) * bytes / load.map().port());
  }

  void circulantPhase(int count, int stride, double width, bool combines) {
    for (int s = count; s > 1; s = (s + 1) / 2) {
      const int h = (s + 1) / 2;
      const auto to = [=](int r) {
        const int place = r / stride % count;
        return r + ((place + h) % count - place) * stride;
      };
      load.exchange({1, (s - h) * width, messagesOf(s - h), combines ? (s - h) * width : 0, false}, to);
    }
  }

  double width() const { return is(Collective::allReduce) ? n / p() : n; }

  void ring() {
    if (reduces()) ringPhase(p(), 1, width(), 1, true);
    if (gathers()) ringPhase(p(), 1, width(), 1, false);
  }

  void circulant() {
    if (reduces()) circulantPhase(p(), 1, width(), true);
    if (reduces() && gathers()) circulantSkew(p(), n);
    if (gathers()) circulantPhase(p(), 1, width(), false);
  }

  /// Before and after: those who sit out hand over their vector and get the result, the other way.
  void folded(const Fold& fold, bool before) {
    if (!fold.needed()) return;
    const auto to = [&](int r) {
      if (before) return fold.sitsOut(r) ? r + 1 : r;
      return fold.actsForTwo(r) ? r - 1 : r;
    };
    load.exchange({1, n, 1, before ? n : 0, false, before}, to);
  }

  void recursiveDoubling() {
    if (is(Collective::allGather)) {
      for (int d = 1; d < p(); d *= 2) load.exchange({1, d * n, 1, 0, false}, [=](int r) { return r ^ d; });
      return;
    }
    const Fold fold(p());
    folded(fold, true);
    for (int d = 1; d < fold.size(); d *= 2) {
      const auto to = [&](int r) { return fold.sitsOut(r) ? r : fold.rankOf(fold.virtualOf(r) ^ d); };
      load.exchange({1, n, 1, n, false}, to);
    }
    // Those who act for two and started later meet others who did only if they are more than half.
    if (2 * (p() - fold.size()) > fold.size()) return folded(fold, false);
    if (fold.needed()) load.wait(n / load.map().port());
  }

  void butterfly(Butterfly::Partner partner, bool inOrder) {
    const Fold fold(p());
    const bool whole = is(Collective::allReduce);
    const double all = whole ? n : n * p();
    int levels = 0;
    while ((1 << levels) < fold.size()) ++levels;
    const auto at = [&](int level, bool combines) {
      const auto to = [&](int r) {
        if (fold.sitsOut(r)) return r;
        return fold.rankOf(partner(fold.virtualOf(r), level, fold.size(), request.dimensions));
      };
      const double bytes = all / (1 << (level + 1));
      load.exchange({1, bytes, 1, combines ? bytes : 0, false}, to);
    };
    folded(fold, true);
    // Beside it goes half of the data of the first exchange; the same at the end.
    if (fold.needed()) load.wait(n / load.map().port());
    if (is(Collective::reduceScatter) && !inOrder) load.local(all);
    for (int l = 0; reduces() && l < levels; ++l) at(l, true);
    for (int l = levels - 1; gathers() && l >= 0; --l) at(l, false);
    if (is(Collective::allGather) && !inOrder) load.local(all / 2);
    folded(fold, false);
  }

  void pat() {
    int distance = 1;
    while (2 * distance < p()) distance *= 2;
    std::vector<std::pair<int, int>> levels;  // distance, blocks
    for (int most = distance; most >= 1; most /= 2) {
      // Offsets that are there: multiples of 2 * most below p. Each goes on unless it would leave the range.
      const int sent = (p() - 1 - most) / (2 * most) + 1;
      levels.emplace_back(most, sent);
    }
    if (reduces()) {
      load.local(n * p());
      std::reverse(levels.begin(), levels.end());
    }
    for (const auto& [d, blocks] : levels) {
      const int sign = reduces() ? -1 : 1;
      const int offset = d;
      load.exchange({1, blocks * n, 1, sum(blocks * n), false},
                    [=, this](int r) { return wrap(r + sign * offset, p()); });
    }
    if (gathers()) load.local(n * levels.back().second);
  }

  void onTree(const Tree& tree) {
    const bool perRank = is(Collective::gather) || is(Collective::scatter);
    const TreeLoad one{&tree, n, perRank, sum(n), perRank};
    const TreeLoad plain{&tree, n, perRank, 0, perRank};
    if (is(Collective::allReduce)) {
      load.up({&one, 1});
      load.down({&plain, 1});
      return;
    }
    if (is(Collective::allGather) || is(Collective::reduceScatter)) {
      const TreeLoad parts{&tree, n, true, 0, true}, whole{&tree, n * p(), false, sum(n * p()), false};
      load.up({reduces() ? &whole : &parts, 1});
      load.down({reduces() ? &parts : &whole, 1});
      return;
    }
    load.doNotHold();
    is(Collective::reduce) || is(Collective::gather) ? load.up({&one, 1}) : load.down({&plain, 1});
  }

  void doubleTrees() {
    const bool rooted = isRooted(request.collective);
    const int places = rooted ? p() - 1 : p();
    std::vector<int> members;
    for (int place = 0; rooted && place < places; ++place) members.push_back(wrap(place + request.root + 1, p()));
    const Tree trees[] = {doubleTree(0, places), doubleTree(1, places)};
    std::array<TreeLoad, 2> loads;
    for (std::size_t i = 0; i < 2; ++i) {
      loads[i] = {&trees[i], n / 2, false, sum(n / 2), false, members};
    }
    if (is(Collective::allReduce)) {
      load.up(loads);
      for (TreeLoad& one : loads) one.combinedPerChild = 0;
      load.down(loads);
      return;
    }
    load.doNotHold();
    // A rank's two children in one tree share its port with nobody, but wait for it when the other tree is behind, the
    // more so the deeper the trees are, and where it has to add. From comparison with the simulator.
    const double depth = std::log2(p()), adding = std::min(1.0, load.map().machine().gamma * load.map().port());
    load.slowDown(std::max(1.0, 0.6 + 0.17 * depth + (is(Collective::reduce) ? adding * (0.3 + 0.08 * depth) : 0)));
    // Between the root and the tops of the trees: half of the data each.
    const double hop = load.hop(load.map().levels() - 1, n) + 3 * load.map().machine().overhead;
    load.wait(hop + load.map().machine().gamma * sum(n / 2));
    for (const Tree& tree : trees) {
      const int top = members[static_cast<std::size_t>(tree.rankOf(tree.root()))];
      is(Collective::reduce) ? load.loadEdge(top, request.root, n / 2) : load.loadEdge(request.root, top, n / 2);
    }
    is(Collective::reduce) ? load.up(loads) : load.down(loads);
  }

  void chain() {
    constexpr int blocks = chainBlocks;
    load.doNotHold();
    const CostMap& map = load.map();
    const double block = n / blocks;
    const double cpu = 2 * map.machine().overhead + map.machine().gamma * sum(block);
    double first = 0, pace = cpu;  // of the first block to the end, and of those behind it
    for (int v = 0; v + 1 < p(); ++v) {
      const int meet = map.meet(wrap(request.root + v, p()), wrap(request.root + v + 1, p()));
      const int from = wrap(request.root + v, p()), to = wrap(request.root + v + 1, p());
      double transfer = std::max({map.level(meet).beta, 1 / map.port(from), 1 / map.port(to)});
      for (int l = 0; l < meet; ++l)
        transfer = std::max({transfer, load.perByteOf(l, map.groupOf(from, l)), load.perByteOf(l, map.groupOf(to, l))});
      first += map.level(meet).alpha + block * transfer + cpu;
      pace = std::max(pace, block * transfer);
    }
    load.wait(first + (blocks - 1) * pace);
    load.loadOnly({1, n, blocks, sum(n), true}, [this](int r) { return wrap(r + 1, p()); });
  }

  void circulantPipeline() {
    constexpr int blocks = pipelineBlocks;
    load.doNotHold();
    std::vector<int> skips;
    for (int s = p(); s > 1; s = (s + 1) / 2) skips.insert(skips.begin(), (s + 1) / 2);
    const int q = static_cast<int>(skips.size());
    const int rounds = blocks - 1 + q;
    if (p() == 2) return load.exchange({1, n, blocks, sum(n), true}, [](int r) { return 1 - r; });
    const double before = load.path();
    for (int i = 0; i < q; ++i) {
      const int repeats = rounds / q + (i >= q - rounds % q ? 1 : 0);
      const int skip = skips[static_cast<std::size_t>(i)];
      load.exchange({static_cast<double>(repeats), n / blocks, 1, sum(n / blocks), false},
                    [=, this](int r) { return wrap(r + skip, p()); });
    }
    if (is(Collective::reduce)) return;
    // The root sends all its blocks as fast as its CPU can, so they share its port and come later than their rounds
    // would have it, unless narrower links keep them apart.
    const CostMap& map = load.map();
    const double shared = std::max(0, q - 2) * (n / map.port() - blocks * map.machine().overhead);
    const double apart = load.path() - before - rounds * load.hop(map.levels() - 1, n / blocks);
    load.wait(std::max(0.0, shared - std::max(0.0, apart)));
  }

  void nested(const PlanRequest& grouped, bool rings) {
    const std::vector<NestingLevel> levels = nestingOf(grouped);
    std::vector<int> members(static_cast<std::size_t>(p()));
    for (int r = 0; r < p(); ++r) members[static_cast<std::size_t>(r)] = r;
    if (is(Collective::allReduce)) return nestedAllReduce(levels, 0, members, 1, n, rings);
    int stride = 1;
    std::vector<std::pair<int, int>> phases;
    for (const NestingLevel& level : levels) {
      phases.emplace_back(level.sizes[0], stride);
      stride *= level.sizes[0];
    }
    if (is(Collective::allGather)) std::reverse(phases.begin(), phases.end());
    for (const auto& [count, apart] : phases) {
      const double blocks = static_cast<double>(p()) / (count * apart);
      ringPhase(count, apart, blocks * n, blocks, reduces());
    }
  }

  /// `members` go on; `stride`: of neighbours among them while all levels so far were even.
  void nestedAllReduce(const std::vector<NestingLevel>& levels, std::size_t depth, const std::vector<int>& members,
                       int stride, double bytes, bool rings) {
    if (depth == levels.size()) return;
    const NestingLevel& level = levels[depth];
    if (!level.isEven) {
      std::vector<int> leaders, largest;
      std::size_t next = 0;
      for (const int size : level.sizes) {
        leaders.push_back(members[next]);
        if (static_cast<std::size_t>(size) > largest.size())
          largest.assign(members.begin() + static_cast<std::ptrdiff_t>(next),
                         members.begin() + static_cast<std::ptrdiff_t>(next) + size);
        next += static_cast<std::size_t>(size);
      }
      const Tree tree = knomialTree(2, static_cast<int>(largest.size()), 0);
      TreeLoad one{&tree, bytes, false, bytes, false, largest};
      load.up({&one, 1});
      nestedAllReduce(levels, depth + 1, leaders, 0, bytes, rings);
      one.combinedPerChild = 0;
      load.down({&one, 1});
      return;
    }
    const int count = level.sizes[0];
    const auto phase = [&](bool combines) {
      if (stride > 0) {
        rings ? ringPhase(count, stride, bytes / count, 1, combines)
              : circulantPhase(count, stride, bytes / count, combines);
      } else {
        amongMembers(members, count, bytes / count, rings, combines);
      }
    };
    phase(true);
    if (!rings) circulantSkew(count, bytes);
    std::vector<int> lane;
    for (std::size_t i = 0; i < members.size(); i += static_cast<std::size_t>(count)) lane.push_back(members[i]);
    nestedAllReduce(levels, depth + 1, lane, stride * count, bytes / count, rings);
    phase(false);
  }

  /// The same phases where only leaders take part.
  void amongMembers(const std::vector<int>& members, int count, double width, bool rings, bool combines) {
    std::vector<int> placeOf(static_cast<std::size_t>(p()), -1);
    for (std::size_t i = 0; i < members.size(); ++i)
      placeOf[static_cast<std::size_t>(members[i])] = static_cast<int>(i);
    const auto toward = [&](int distance) {
      return [&, distance](int r) {
        const int place = placeOf[static_cast<std::size_t>(r)];
        if (place < 0) return r;
        return members[static_cast<std::size_t>(place / count * count + (place + distance) % count)];
      };
    };
    if (rings) return load.exchange({count - 1.0, width, 1, combines ? width : 0, true}, toward(1));
    for (int s = count; s > 1; s = (s + 1) / 2) {
      const int h = (s + 1) / 2;
      load.exchange({1, (s - h) * width, messagesOf(s - h), combines ? (s - h) * width : 0, false}, toward(h));
    }
  }

  bool run(std::string_view name) {
    const int root = isRooted(request.collective) ? request.root : 0;
    for (const std::string_view smooth : {"ring", "oneshot", "twoshot", "parameter_server"})
      if (name == smooth) load.doNotStall();
    if (name == "oneshot") return oneshot(), true;
    if (name == "twoshot") return twoshot(), true;
    if (name == "parameter_server") return parameterServer(), true;
    if (name == "ring") return ring(), true;
    if (name == "recursive_doubling") return recursiveDoubling(), true;
    if (name == "circulant") return circulant(), true;
    if (name == "pat") return pat(), true;
    if (name == "chain") return chain(), true;
    if (name == "circulant_pipeline") return circulantPipeline(), true;
    if (name == "double_tree") return doubleTrees(), true;
    if (name == "binomial") return onTree(knomialTree(2, p(), root)), true;
    if (name == "knomial_4") return onTree(knomialTree(4, p(), root)), true;
    if (name == "knomial_8") return onTree(knomialTree(8, p(), root)), true;
    if (name == "bine" && isRooted(request.collective)) return onTree(bineTree(p(), root)), true;
    if (name == "hierarchical" && isRooted(request.collective)) return onTree(nestedTree(request)), true;
    if (name == "hierarchical") return nested(request, false), true;
    if (name == "hierarchical_ring") return nested(request, true), true;
    if (name == "ring_2d") {
      PlanRequest grouped = request;
      grouped.groups = rowsOf(request);
      return nested(grouped, true), true;
    }
    const Butterfly::Partner partner = butterflyPartner(name);
    if (partner == nullptr) return false;
    return butterfly(partner, name == "halving_doubling_far" || p() == 2), true;
  }
};

}  // namespace

int blocksOf(const Algorithm& algorithm, const PlanRequest& request) {
  const std::string_view name = algorithm.name;
  const int p = request.ranks;
  if (partitionOf(request.collective) == Partition::stack || p == 1) return 1;
  if (name == "chain") return chainBlocks;
  if (name == "circulant_pipeline") return pipelineBlocks;
  if (name == "double_tree") return 2;
  if (name == "twoshot") return request.collective == Collective::broadcast ? std::max(1, p - 1) : p;
  if (request.collective != Collective::allReduce) return 1;
  if (name == "ring" || name == "circulant" || name == "ring_2d") return p;
  if (butterflyPartner(name) != nullptr) return Fold(p).size();
  int blocks = 1;
  if (name == "hierarchical" || name == "hierarchical_ring")
    for (const NestingLevel& level : nestingOf(request)) blocks *= level.isEven ? level.sizes[0] : 1;
  return blocks;
}

std::optional<ChunkCost> priceChunk(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                                    double bytes) {
  if (!algorithm.serves(request)) return std::nullopt;
  CostLoad load(map);
  if (request.ranks == 1) {
    load.local(bytes);
  } else if (!Pricing{request, load, bytes}.run(algorithm.name)) {
    return std::nullopt;
  }
  return load.chunk();
}

std::optional<double> predict(const Algorithm& algorithm, const PlanRequest& request, const CostMap& map,
                              const CostCall& call) {
  const int chunks = chunksOf(call);
  const std::optional<ChunkCost> chunk = priceChunk(algorithm, request, map, call.bytes / chunks);
  if (!chunk) return std::nullopt;
  return secondsOf(*chunk, chunks, std::max(1, call.window));
}

}  // namespace tacc
