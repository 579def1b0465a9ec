#include "algorithms/exchange_phases.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "algorithms/block_runs.hpp"

namespace tacc {
namespace {

/// The writer's rank in a phase.
struct Member {
  const PhaseShape& shape;
  int i = shape.self;

  int n() const { return static_cast<int>(shape.ranks.size()); }
  int rank() const { return rankAt(0); }
  int rankAt(int distance) const { return shape.ranks[static_cast<std::size_t>(wrap(i + distance, n()))]; }
  Operand peerAt(int distance) const { return peer(rankAt(distance)); }
  /// First block of the member at `distance`.
  int blockAt(int distance) const { return shape.starts[static_cast<std::size_t>(wrap(i + distance, n()))]; }
  /// Blocks of this number of members from there on, whose numbers do not start again among them.
  int blocksOf(int distance, int count) const {
    const auto first = static_cast<std::size_t>(wrap(i + distance, n()));
    return shape.starts[first + static_cast<std::size_t>(count)] - shape.starts[first];
  }
};

int ringRounds(int n) { return n == 1 ? 0 : n; }

void ringReduceScatter(PlanWriter& writer, const PhaseShape& shape, bool isHeld, int start, Sum sum) {
  const auto partial = [&](int block) { return isHeld ? shape.held(block) : input(block); };
  const Member m{shape};
  if (m.n() == 1) return;
  writer.step(start, m.blockAt(-1), m.blocksOf(-1, 1), {partial(m.blockAt(-1))}, {m.peerAt(1)});
  for (int k = 1; k < m.n(); ++k) {
    const int block = m.blockAt(-1 - k);
    const bool isLast = k == m.n() - 1;
    writer.step(start + k, block, m.blocksOf(-1 - k, 1),
                lowerFirst(m.rankAt(-1), m.peerAt(-1), m.rank(), partial(block)),
                {isLast ? shape.held(block) : m.peerAt(1)}, isLast ? sum : Sum::partial);
  }
}

void ringAllGather(PlanWriter& writer, const PhaseShape& shape, int start) {
  const Member m{shape};
  if (m.n() == 1) return;
  writer.step(start, m.blockAt(0), m.blocksOf(0, 1), {shape.held(m.blockAt(0))}, {m.peerAt(1)});
  for (int j = 1; j < m.n(); ++j) {
    std::vector<Operand> destinations = {shape.held(m.blockAt(-j))};
    if (j < m.n() - 1) destinations.push_back(m.peerAt(1));
    writer.step(start + j, m.blockAt(-j), m.blocksOf(-j, 1), {m.peerAt(-1)}, destinations);
  }
}

std::vector<int> skipsOf(int n) {
  std::vector<int> skips;
  for (int s = n; s > 1; s = (s + 1) / 2) skips.push_back(s);
  skips.push_back(1);
  return skips;
}

int circulantRounds(int n) { return 2 * (static_cast<int>(skipsOf(n).size()) - 1); }

/// Level 0 writes sums over the first n/2 relative shares where they are held; the others are only ever sent as they
/// were.
void circulantReduceScatter(PlanWriter& writer, const PhaseShape& shape, bool isHeld, int start, Sum sum) {
  const Member m{shape};
  const std::vector<int> skips = skipsOf(m.n());
  const int levels = static_cast<int>(skips.size()) - 1;
  const int touched = m.n() / 2;
  for (int k = 0; k < levels; ++k) {
    const int s = skips[k], h = skips[k + 1], round = start + 2 * k;
    const auto partial = [&](int relative) {
      const int block = m.blockAt(relative);
      return isHeld || (k > 0 && relative < touched) ? shape.held(block) : input(block);
    };
    const int edge = k > 0 ? touched : s;  // sums and inputs cannot be one message
    for (const BlockRun& run : cutAt(h, s, m.n() - m.i, edge))
      writer.step(round, m.blockAt(run.first), m.blocksOf(run.first, run.count), {partial(run.first)}, {m.peerAt(h)});
    for (const BlockRun& run : cutAt(h, s, m.n() - wrap(m.i - h, m.n()), edge)) {
      const int block = m.blockAt(run.first - h);
      writer.step(round + 1, block, m.blocksOf(run.first - h, run.count),
                  lowerFirst(m.rank(), partial(run.first - h), m.rankAt(-h), m.peerAt(-h)), {shape.held(block)},
                  k == levels - 1 ? sum : Sum::partial);
    }
  }
}

void circulantAllGather(PlanWriter& writer, const PhaseShape& shape, int start) {
  const Member m{shape};
  const std::vector<int> skips = skipsOf(m.n());
  int round = start;
  for (std::size_t k = skips.size() - 1; k-- > 0; round += 2) {
    const int s = skips[k], h = skips[k + 1];
    for (const BlockRun& run : cutAt(0, s - h, m.n() - m.i, m.n() - wrap(m.i - h, m.n()) + h)) {
      const int block = m.blockAt(run.first);
      writer.step(round, block, m.blocksOf(run.first, run.count), {shape.held(block)}, {m.peerAt(-h)});
    }
    for (const BlockRun& run : cutAt(h, s, m.n() - m.i, m.n() - wrap(m.i + h, m.n()) + h)) {
      const int block = m.blockAt(run.first);
      writer.step(round + 1, block, m.blocksOf(run.first, run.count), {m.peerAt(h)}, {shape.held(block)});
    }
  }
}

std::vector<Exchange> ringExchanges(const std::shared_ptr<const Teams>& teams, int width, bool combines) {
  Exchange once;
  once.to = [teams](int r) { return teams->at(r, 1); };
  once.blocks = width;
  once.repeats = teams->size() - 1;
  once.combines = combines;
  once.flows = true;
  return {once};
}

std::vector<Exchange> circulantExchangesAlike(const std::shared_ptr<const Teams>& teams, int width, bool combines) {
  const int n = teams->size();
  const std::vector<int> skips = skipsOf(n);
  std::vector<Exchange> levels;
  for (std::size_t k = 0; k + 1 < skips.size(); ++k) {
    const int s = skips[k], h = skips[k + 1], edge = k > 0 ? n / 2 : s;
    Exchange& level = levels.emplace_back();
    level.to = [=](int r) { return teams->at(r, combines ? h : -h); };
    level.blocks = (s - h) * width;
    level.combines = combines;
    level.cut = [=](int r) {
      const int i = teams->placeOf(r);
      return messagesOf(combines ? cutAt(h, s, n - i, edge) : cutAt(0, s - h, n - i, n - wrap(i - h, n) + h), width);
    };
  }
  if (!combines) std::ranges::reverse(levels);
  return levels;
}

}  // namespace

std::vector<int> evenStarts(int first, int width, int n) {
  std::vector<int> starts;
  for (int i = 0; i <= n; ++i) starts.push_back(first + i * width);
  return starts;
}

void UnevenTeams::add(Team team) {
  for (std::size_t i = 0; i < team.ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(team.ranks[i]);
    teamOf_[rank] = static_cast<int>(teams_.size());
    placeOf_[rank] = static_cast<int>(i);
  }
  teams_.push_back(std::move(team));
}

std::vector<Exchange> circulantExchanges(const std::shared_ptr<const UnevenTeams>& teams, bool combines) {
  std::size_t most = 1;
  for (const UnevenTeams::Team& team : teams->teams()) most = std::max(most, team.ranks.size());
  std::map<int, std::vector<int>> skipsOfSize;
  for (const UnevenTeams::Team& team : teams->teams()) {
    const int n = static_cast<int>(team.ranks.size());
    if (!skipsOfSize.contains(n)) skipsOfSize.emplace(n, skipsOf(n));
  }
  const auto skips = std::make_shared<const std::map<int, std::vector<int>>>(std::move(skipsOfSize));
  /// A rank in exchange t: its members behind it at a distance of h, and those that it deals with up to s; 0: none.
  struct Turn {
    int n = 1, i = 0, s = 0, h = 0, edge = 0;
  };
  const auto turnOf = [=](int rank, std::size_t t) {
    const UnevenTeams::Team* team = teams->teamOf(rank);
    if (team == nullptr) return Turn();
    const int n = static_cast<int>(team->ranks.size());
    const std::vector<int>& mine = skips->at(n);
    if (t + 1 >= mine.size()) return Turn();
    const std::size_t k = combines ? t : mine.size() - 2 - t;
    return Turn{n, teams->placeOf(rank), mine[k], mine[k + 1], k > 0 ? n / 2 : mine[k]};
  };
  std::vector<Exchange> exchanges;
  for (std::size_t t = 0; t + 1 < skipsOf(static_cast<int>(most)).size(); ++t) {
    Exchange& exchange = exchanges.emplace_back();
    exchange.combines = combines;
    exchange.blocks = 0;
    exchange.to = [=](int r) {
      const Turn turn = turnOf(r, t);
      if (turn.s == 0) return r;
      return teams->teamOf(r)->ranks[static_cast<std::size_t>(wrap(turn.i + (combines ? turn.h : -turn.h), turn.n))];
    };
    exchange.cut = [=](int r) {
      const auto [n, i, s, h, edge] = turnOf(r, t);
      const std::vector<int>& starts = teams->teamOf(r)->starts;
      MessageCut cut;
      for (const BlockRun& run : combines ? cutAt(h, s, n - i, edge) : cutAt(0, s - h, n - i, n - wrap(i - h, n) + h)) {
        const auto first = static_cast<std::size_t>(wrap(i + run.first, n));
        cut.blocks[static_cast<std::size_t>(cut.count++)] =
            starts[first + static_cast<std::size_t>(run.count)] - starts[first];
      }
      return cut;
    };
    for (const UnevenTeams::Team& team : teams->teams()) {
      for (const int r : team.ranks) {
        if (exchange.to(r) == r) continue;
        const MessageCut cut = exchange.cut(r);
        exchange.blocks = std::max(exchange.blocks, std::accumulate(cut.blocks.begin(), cut.blocks.end(), 0));
      }
    }
  }
  return exchanges;
}

Teams::Teams(int ranks, const std::vector<std::vector<int>>& teams)
    : size_(static_cast<int>(teams.front().size())), places_(static_cast<std::size_t>(ranks), -1) {
  for (const std::vector<int>& team : teams) {
    for (const int rank : team) {
      places_[static_cast<std::size_t>(rank)] = static_cast<int>(members_.size());
      members_.push_back(rank);
    }
  }
}

constinit const ExchangePhases ringPhases = {ringRounds, ringReduceScatter, ringAllGather, ringExchanges};
constinit const ExchangePhases circulantPhases = {circulantRounds, circulantReduceScatter, circulantAllGather,
                                                  circulantExchangesAlike};

}  // namespace tacc
