#include "selection/cost/rank_classes.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/index.hpp"

namespace tacc {
namespace {

using Colour = std::uint64_t;

/// More rounds of telling apart are needed along chains only, where no two ranks are alike.
constexpr int mostRounds = 24;

/// Of the work of a round, in events.
constexpr double eventsOfRank = 1, eventsOfEdge = 0.25;

/// splitmix64's.
Colour scatter(Colour value) noexcept {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

template <class... Rest>
Colour mix(Colour first, Rest... rest) noexcept {
  Colour mixed = scatter(first);
  ((mixed = scatter(mixed ^ static_cast<Colour>(rest))), ...);
  return mixed;
}

/// That `from` sends something to `to`; equal tags: the same thing.
struct MessageEdge {
  int from, to, meet;
  Colour sent, received;  // what it is to either
};

class Telling {
 public:
  Telling(const Exchanges& exchanges, const CostMap& map) : map_(map), colours_(at(map.ranks())) {
    for (int r = 0; r < map.ranks(); ++r)
      colours_[at(r)] = mix(std::bit_cast<Colour>(map.port(r)), r == exchanges.source ? 1 : 0);
    for (std::size_t i = 0; i < exchanges.phases.size(); ++i) {
      phase_ = mix(i);
      std::visit(*this, exchanges.phases[i]);
    }
  }

  enum class Outcome { told, helpsLittle, tooMuchWork };

  Outcome run(double& budget) {
    const double ofRound =
        eventsOfRank * static_cast<double>(colours_.size()) + eventsOfEdge * static_cast<double>(edges_.size());
    std::size_t told = countColours();
    for (int round = 0; round < mostRounds; ++round) {
      if (budget < ofRound) return Outcome::tooMuchWork;
      budget -= ofRound;
      lookAround();
      const std::size_t now = countColours();
      if (now == told) return Outcome::told;
      told = now;
      if (told > colours_.size() / 2) return Outcome::helpsLittle;
    }
    return Outcome::helpsLittle;
  }

  RankClasses finish() const {
    RankClasses classes;
    std::unordered_map<Colour, int> numbers;
    for (int r = 0; r < map_.ranks(); ++r) {
      const auto [found, isNew] = numbers.try_emplace(colours_[at(r)], static_cast<int>(numbers.size()));
      classes.classOf.push_back(found->second);
      if (isNew) classes.representatives.push_back(r);
    }
    for (const std::vector<Colour>& level : groupColours()) {
      numbers.clear();
      std::vector<int>& groups = classes.groupsOf.emplace_back();
      for (const Colour colour : level)
        groups.push_back(numbers.try_emplace(colour, static_cast<int>(numbers.size())).first->second);
    }
    return classes;
  }

  void operator()(const Exchange& exchange) {
    for (int r = 0; r < map_.ranks(); ++r) {
      const int to = exchange.to(r);
      if (to == r) continue;
      Colour cut = phase_;
      if (exchange.cut) {
        const MessageCut one = exchange.cut(r);
        for (int m = 0; m < one.count; ++m) cut = mix(cut, one.blocks[at(m)]);
      }
      join(r, to, cut, cut);
    }
  }

  void operator()(const EveryToEvery& every) {
    // Who is near comes earlier or later among the others.
    for (int r = 0; r < map_.ranks(); ++r)
      if (r == every.except || (every.oneByOne && map_.levels() > 1)) addTo(r, mix(phase_, r));
  }

  void operator()(const Star& star) {
    for (int r = 0; r < map_.ranks(); ++r) {
      if (r == star.center) {
        addTo(r, phase_);
        continue;
      }
      const Colour part = star.oneByOne ? mix(phase_, r) : phase_;
      join(star.isOutward ? star.center : r, star.isOutward ? r : star.center, part, part);
    }
  }

  void operator()(const TreeExchange& exchange) {
    for (const TreeExchange::Member& member : exchange.trees) {
      const Tree& tree = *member.tree;
      const auto rankOf = [&](int place) {
        const int rank = tree.rankOf(place);
        return member.ranks.empty() ? rank : member.ranks[at(rank)];
      };
      for (int place = 0; place < tree.size(); ++place) {
        const std::vector<int>& children = tree.node(place).children;
        for (std::size_t i = 0; i < children.size(); ++i) {
          const int size = exchange.isPerRank ? tree.node(children[i]).size : 1;
          const Colour part = mix(phase_, i, children.size(), size);
          join(rankOf(place), rankOf(children[i]), part, mix(part, 1));
        }
      }
    }
  }

  void operator()(const Copy& copy) {
    if (copy.only >= 0) addTo(copy.only, phase_);
  }

 private:
  void addTo(int rank, Colour part) { colours_[at(rank)] = mix(colours_[at(rank)], part); }
  void join(int from, int to, Colour sent, Colour received) {
    edges_.push_back({from, to, map_.meet(from, to), sent, mix(received, 2)});
  }

  std::size_t countColours() {
    sorted_ = colours_;
    std::ranges::sort(sorted_);
    return static_cast<std::size_t>(std::ranges::unique(sorted_).begin() - sorted_.begin());
  }

  /// Groups by their uplinks, by who is in them, and by what they are in.
  std::vector<std::vector<Colour>> groupColours() const {
    std::vector<std::vector<Colour>> groups;
    for (int l = 0; l < map_.levels(); ++l) {
      std::vector<Colour>& level = groups.emplace_back(at(map_.groups(l)), 0);
      for (int r = 0; r < map_.ranks(); ++r) level[at(map_.groupOf(r, l))] += mix(colours_[at(r)], l);
      for (int g = 0; g < map_.groups(l); ++g)
        level[at(g)] = mix(level[at(g)], std::bit_cast<Colour>(map_.level(l).uplinks.of(g)));
    }
    for (int l = map_.levels() - 2; l >= 0; --l)
      for (int g = 0; g < map_.groups(l); ++g)
        groups[at(l)][at(g)] =
            mix(groups[at(l)][at(g)], groups[at(l) + 1][at(map_.groupOf(map_.beginOf(g, l), l + 1))]);
    return groups;
  }

  void lookAround() {
    const std::vector<Colour> inside = groupColours().front();
    std::vector<Colour> next(colours_.size());
    for (int r = 0; r < map_.ranks(); ++r) next[at(r)] = mix(colours_[at(r)], inside[at(map_.groupOf(r, 0))]);
    for (const MessageEdge& edge : edges_) {
      next[at(edge.from)] += mix(edge.sent, colours_[at(edge.to)], edge.meet);
      next[at(edge.to)] += mix(edge.received, colours_[at(edge.from)], edge.meet);
    }
    colours_ = std::move(next);
  }

  const CostMap& map_;
  Colour phase_ = 0;
  std::vector<Colour> colours_;  // per rank
  std::vector<MessageEdge> edges_;
  std::vector<Colour> sorted_;
};

}  // namespace

RankClasses separate(const CostMap& map) {
  RankClasses classes;
  classes.classOf.resize(at(map.ranks()));
  std::iota(classes.classOf.begin(), classes.classOf.end(), 0);
  classes.representatives = classes.classOf;
  for (int l = 0; l < map.levels(); ++l) {
    std::vector<int>& groups = classes.groupsOf.emplace_back(at(map.groups(l)));
    std::iota(groups.begin(), groups.end(), 0);
  }
  return classes;
}

std::optional<RankClasses> classesOf(const Exchanges& exchanges, const CostMap& map, double& budget) {
  for (int l = 0; l < map.levels(); ++l)
    if (map.wires(l) > 0) return separate(map);  // each of those carries something else
  const double edges = static_cast<double>(map.ranks()) * static_cast<double>(exchanges.phases.size());
  if (budget < eventsOfEdge * edges) return std::nullopt;
  budget -= eventsOfEdge * edges;  // to list them
  Telling telling(exchanges, map);
  switch (telling.run(budget)) {
    case Telling::Outcome::told:
      return telling.finish();
    case Telling::Outcome::helpsLittle:
      return separate(map);
    case Telling::Outcome::tooMuchWork:
      break;
  }
  return std::nullopt;
}

}  // namespace tacc
