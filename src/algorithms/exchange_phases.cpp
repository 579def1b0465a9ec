#include "algorithms/exchange_phases.hpp"

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
  int blockAt(int distance) const { return shape.first + wrap(i + distance, n()) * shape.width; }
};

int ringRounds(int n) { return n == 1 ? 0 : n; }

void ringReduceScatter(PlanWriter& writer, const PhaseShape& shape, bool fromOutput, int start, Sum sum) {
  const auto partial = [&](int block) { return fromOutput ? output(block) : input(block); };
  const Member m{shape};
  if (m.n() == 1) return;
  writer.step(start, m.blockAt(-1), shape.width, {partial(m.blockAt(-1))}, {m.peerAt(1)});
  for (int k = 1; k < m.n(); ++k) {
    const int block = m.blockAt(-1 - k);
    const bool isLast = k == m.n() - 1;
    writer.step(start + k, block, shape.width, lowerFirst(m.rankAt(-1), m.peerAt(-1), m.rank(), partial(block)),
                {isLast ? output(block) : m.peerAt(1)}, isLast ? sum : Sum::partial);
  }
}

void ringAllGather(PlanWriter& writer, const PhaseShape& shape, int start) {
  const Member m{shape};
  if (m.n() == 1) return;
  writer.step(start, m.blockAt(0), shape.width, {output(m.blockAt(0))}, {m.peerAt(1)});
  for (int j = 1; j < m.n(); ++j) {
    std::vector<Operand> destinations = {output(m.blockAt(-j))};
    if (j < m.n() - 1) destinations.push_back(m.peerAt(1));
    writer.step(start + j, m.blockAt(-j), shape.width, {m.peerAt(-1)}, destinations);
  }
}

std::vector<int> skipsOf(int n) {
  std::vector<int> skips;
  for (int s = n; s > 1; s = (s + 1) / 2) skips.push_back(s);
  skips.push_back(1);
  return skips;
}

int circulantRounds(int n) { return 2 * (static_cast<int>(skipsOf(n).size()) - 1); }

/// Level 0 writes sums over the first n/2 relative blocks into the output; the others are only ever sent as they were.
void circulantReduceScatter(PlanWriter& writer, const PhaseShape& shape, bool fromOutput, int start, Sum sum) {
  const Member m{shape};
  const std::vector<int> skips = skipsOf(m.n());
  const int levels = static_cast<int>(skips.size()) - 1;
  const int touched = m.n() / 2;
  for (int k = 0; k < levels; ++k) {
    const int s = skips[k], h = skips[k + 1], round = start + 2 * k;
    const auto partial = [&](int relative) {
      const int block = m.blockAt(relative);
      return fromOutput || (k > 0 && relative < touched) ? output(block) : input(block);
    };
    const int edge = k > 0 ? touched : s;  // sums and inputs cannot be one message
    for (const BlockRun& run : cutAt(h, s, m.n() - m.i, edge))
      writer.step(round, m.blockAt(run.first), run.count * shape.width, {partial(run.first)}, {m.peerAt(h)});
    for (const BlockRun& run : cutAt(h, s, m.n() - wrap(m.i - h, m.n()), edge)) {
      const int block = m.blockAt(run.first - h);
      writer.step(round + 1, block, run.count * shape.width,
                  lowerFirst(m.rank(), partial(run.first - h), m.rankAt(-h), m.peerAt(-h)), {output(block)},
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
      writer.step(round, block, run.count * shape.width, {output(block)}, {m.peerAt(-h)});
    }
    for (const BlockRun& run : cutAt(h, s, m.n() - m.i, m.n() - wrap(m.i + h, m.n()) + h)) {
      const int block = m.blockAt(run.first);
      writer.step(round + 1, block, run.count * shape.width, {m.peerAt(h)}, {output(block)});
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

std::vector<Exchange> circulantExchanges(const std::shared_ptr<const Teams>& teams, int width, bool combines) {
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
                                                  circulantExchanges};

}  // namespace tacc
