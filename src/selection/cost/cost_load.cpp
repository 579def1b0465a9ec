#include "selection/cost/cost_load.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tacc {
namespace {

double highest(const std::vector<double>& values) { return values.empty() ? 0 : *std::ranges::max_element(values); }

}  // namespace

CostLoad::CostLoad(const CostMap& map, double blockBytes, int mostRanks)
    : map_(map),
      block_(blockBytes),
      ready_(at(map.ranks()), 0.0),
      begun_(at(map.ranks()), std::numeric_limits<double>::infinity()),
      done_(ready_),
      out_(ready_),
      in_(ready_),
      own_(ready_),
      everybody_(at(map.ranks())),
      routes_(at(map.ranks())),
      cuts_(at(map.ranks())) {
  std::iota(everybody_.begin(), everybody_.end(), 0);
  chooseSample(mostRanks);
  for (int l = 0; l + 1 < map.levels(); ++l) {
    groupOut_.emplace_back(at(map.groups(l)), 0.0);
    crossOut_.emplace_back(at(map.groups(l)), 0);
  }
  groupIn_ = groupOut_;
  crossIn_ = crossOut_;
  for (int l = 0; l < map.levels(); ++l) wire_.emplace_back(map.wires(l), 0.0);
}

void CostLoad::run(const Phase& phase, const Phase* next) {
  if (const auto* one = std::get_if<Exchange>(&phase))
    return one->flows ? flow(*one) : exchange(*one, next == nullptr ? nullptr : std::get_if<Exchange>(next));
  if (const auto* one = std::get_if<EveryToEvery>(&phase)) return everyToEvery(*one);
  if (const auto* one = std::get_if<Star>(&phase)) return star(*one);
  if (const auto* one = std::get_if<TreeExchange>(&phase)) return trees(*one);
  copy(std::get<Copy>(phase));
}

double CostLoad::perByteOf(int level, int group) const {
  const double capacity = map_.level(level).uplinks.of(group);
  return capacity > 0 ? 1 / capacity : 0;
}

void CostLoad::occupy(int rank, double begin, double end) {
  begun_[at(rank)] = std::min(begun_[at(rank)], begin);
  done_[at(rank)] = std::max(done_[at(rank)], end);
}

void CostLoad::load(int from, int to, double bytes) {
  out_[at(from)] += bytes;
  in_[at(to)] += bytes;
  const int meet = map_.meet(from, to);
  for (int l = 0; l < meet; ++l) {
    groupOut_[at(l)][at(map_.groupOf(from, l))] += bytes;
    groupIn_[at(l)][at(map_.groupOf(to, l))] += bytes;
  }
  map_.alongWires(meet, from, to, [&](std::size_t wire) { wire_[at(meet)][wire] += bytes; });
}

std::vector<double> CostLoad::early(const Exchange& next) const {
  std::vector<bool> takesPart(at(map_.ranks()), false);
  for (const int r : followed_) {
    if (routes_[at(r)].to == r) continue;
    takesPart[at(r)] = takesPart[at(routes_[at(r)].to)] = true;
  }
  std::vector<double> bytes(at(map_.ranks()), 0.0);
  for (const int r : followed_)
    if (const int to = next.to(r); to != r && !takesPart[at(r)]) bytes[at(to)] = next.blocks * block_;
  return bytes;
}

/// A rank sends when it is ready, and is ready again when it has handled what came.
void CostLoad::exchange(const Exchange& phase, const Exchange* next) {
  const double bytes = phase.blocks * block_;
  findRoutes(phase.to, phase.repeats * bytes, followed_);
  std::vector<double> beside;  // empty: nothing comes
  if (next != nullptr && !next->flows && std::ranges::any_of(followed_, [&](int r) { return routes_[at(r)].to == r; }))
    beside = early(*next);
  const double added = phase.combines ? gamma() : 0, meanwhile = gamma() * phase.copiesMeanwhile * block_;
  for (int i = 0; i < phase.repeats; ++i) {
    std::vector<double> after = ready_;
    for (const int r : followed_) {
      if (routes_[at(r)].to == r) continue;
      cuts_[at(r)] = phase.cut ? phase.cut(r) : MessageCut{{phase.blocks / phase.messages}, phase.messages};
      after[at(r)] += cuts_[at(r)].count * map_.overhead(routes_[at(r)].meet) + meanwhile;
    }
    for (const int r : followed_) {
      const Route& route = routes_[at(r)];
      if (route.to == r) continue;
      const MessageCut& cut = cuts_[at(r)];
      const int messages = cut.count;
      const double overhead = map_.overhead(route.meet);
      const double first = cut.blocks[0] * block_, last = phase.cut ? cut.blocks[at(messages) - 1] * block_ : first;
      const double perByte = std::max(route.perByte, inFlight(bytes / map_.port(r)) / map_.port(r));
      double start = ready_[at(r)] + overhead;
      double end = start + bytes * perByte;
      if (!beside.empty()) end += std::min(bytes, beside[at(route.to)]) / map_.port(route.to);
      if (!together_.empty() && together_[phase_][at(r)] > 1) {
        end = start + bytes * std::max(perByte, together_[phase_][at(r)] / map_.port(r));
      } else if (r == source_) {
        // Its messages to different ranks share its port, those to one rank follow one another.
        double& before = sourceEnds_[route.to];
        start = std::max(start, before);
        end = start + bytes * std::max(route.perByte, static_cast<double>(sourceEnds_.size()) / map_.port(r));
        before = end;
      }
      const double alpha = map_.level(route.meet).alpha;
      occupy(r, ready_[at(r)], end);
      own_[at(r)] += messages * overhead + meanwhile;
      if (route.receiver < 0) continue;
      // Of several messages the first are handled while the others come.
      double& there = after[at(route.receiver)];
      const double work = messages * overhead + added * bytes;
      const double begin = std::max(there, start + first * perByte + alpha);
      there = std::max(begin + work, std::max(there, end + alpha) + overhead + added * last);
      occupy(route.receiver, begin, there);
      own_[at(route.receiver)] += work;
    }
    ready_ = std::move(after);
  }
}

/// In rings: a message that has come goes on at once, so those of all repeats follow one another.
void CostLoad::flow(const Exchange& phase) {
  findRoutes(phase.to, phase.repeats * phase.blocks * block_, everybody_);
  std::vector<bool> isSeen(at(map_.ranks()), false);
  std::vector<int> ring;
  for (int r = 0; r < map_.ranks(); ++r) {
    if (isSeen[at(r)] || routes_[at(r)].to == r) continue;
    ring.clear();
    for (int member = r; !isSeen[at(member)]; member = routes_[at(member)].to) {
      isSeen[at(member)] = true;
      ring.push_back(member);
    }
    flowRound(phase, ring);
  }
}

/// The longest chain of messages that wait for one another goes along the ring hop by hop, but for those that wait at
/// its slowest edge for the message before them.
void CostLoad::flowRound(const Exchange& phase, const std::vector<int>& ring) {
  const std::size_t n = ring.size();
  const double bytes = phase.blocks * block_ / phase.messages;
  const auto cpuOf = [&](const Route& route) {
    return 2 * map_.overhead(route.meet) + (phase.combines ? gamma() * bytes : 0);
  };
  std::vector<double> before = {0.0};  // seconds of the hops before each member, over two laps
  double pace = 0, start = 0;
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < 2 * n; ++i) {
    const Route& route = routes_[at(ring[i % n])];
    const double transfer = bytes * route.perByte, cpu = cpuOf(route);
    before.push_back(before.back() + map_.level(route.meet).alpha + transfer + cpu);
    if (i < n && std::max(transfer, cpu) > pace) {
      pace = std::max(transfer, cpu);
      slowest = i;
    }
  }
  for (const int member : ring) start = std::max(start, ready_[at(member)]);
  const auto repeats = static_cast<std::size_t>(phase.repeats);
  const double messages = static_cast<double>(repeats) * phase.messages;
  const double lap = before[n];
  const std::size_t laps = repeats / n;  // whole ones
  for (std::size_t i = 0; i < n; ++i) {
    const double hops = static_cast<double>(laps) * lap + before[n + i] - before[n + i - repeats % n];
    const std::size_t distance = (i + n - slowest - 1) % n + 1;  // hops from the beginning of the slowest edge
    const double along = before[n + i] - before[n + i - distance];
    // A hop is one message further on at the next edge, and waiting is for the next message at the same one.
    const double waits = messages - 1 - phase.messages * (static_cast<double>(distance) - 1);
    const double end = std::max(hops + (phase.messages - 1) * pace, waits >= 0 ? along + waits * pace : 0);
    const int member = ring[i];
    occupy(member, ready_[at(member)], start + end);
    ready_[at(member)] = start + end;
    own_[at(member)] += messages * cpuOf(routes_[at(member)]);
  }
}

void CostLoad::copy(const Copy& phase) {
  const double work = gamma() * phase.blocks * block_;
  for (int r = 0; r < map_.ranks(); ++r) {
    if (phase.only >= 0 && r != phase.only) continue;
    occupy(r, ready_[at(r)], ready_[at(r)] + work);
    ready_[at(r)] += work;
    own_[at(r)] += work;
  }
}

double CostLoad::busiest() const {
  double busiest = highest(own_);
  for (int r = 0; r < map_.ranks(); ++r) busiest = std::max(busiest, std::max(out_[at(r)], in_[at(r)]) / map_.port(r));
  for (int l = 0; l + 1 < map_.levels(); ++l)
    for (int g = 0; g < map_.groups(l); ++g)
      busiest = std::max(busiest, std::max(groupOut_[at(l)][at(g)], groupIn_[at(l)][at(g)]) * perByteOf(l, g));
  for (int l = 0; l < map_.levels(); ++l)
    if (map_.wires(l) > 0) busiest = std::max(busiest, highest(wire_[at(l)]) / map_.level(l).linkBytesPerSecond);
  return busiest;
}

/// A source's messages to its q partners share its port, so all that it sends in q rounds come together. A rank that
/// waited for them hands on what came at once too: q messages, but for that of the last round, which belongs to the
/// next q. So it goes on from rank to rank. Where the CPU takes longer to handle a message than the port to send it,
/// they start one by one, and only those are under way together that start while one is sent.
double CostLoad::inFlight(double seconds) const {
  const double most = std::max(1.0, static_cast<double>(sourceEnds_.size()) - 1);
  return overhead() > 0 ? std::min(most, 1 + seconds / overhead()) : most;
}

/// Of a prefix: low ranks have what they send before the others do. What a rank sends without anything coming to it in
/// between starts together.
void CostLoad::findTogether(const std::vector<Phase>& phases) {
  const std::size_t ranks = at(map_.ranks());
  together_.assign(phases.size(), std::vector<int>(ranks, 0));
  std::vector<std::vector<bool>> receives(phases.size(), std::vector<bool>(ranks, false));
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const auto* one = std::get_if<Exchange>(&phases[i]);
    for (int r = 0; one != nullptr && r < map_.ranks(); ++r) {
      const int to = one->to(r);
      if (to == r) continue;
      together_[i][at(r)] = 1;
      receives[i][at(to)] = true;
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    int sent = 0;
    std::size_t first = 0;  // phase of those
    for (std::size_t i = 0; i < phases.size(); ++i) {
      sent += together_[i][r];
      if (!receives[i][r] && i + 1 < phases.size()) continue;
      for (; first <= i; ++first) together_[first][r] = sent;
      sent = 0;
    }
  }
}

ChunkCost CostLoad::priceOf(const Exchanges& exchanges, bool isPrefix) {
  source_ = exchanges.source;
  for (const Phase& phase : exchanges.phases)
    if (const auto* one = std::get_if<Exchange>(&phase); one != nullptr && source_ >= 0)
      sourceEnds_[one->to(source_)] = 0;
  sourceEnds_.erase(source_);
  if (isPrefix) findTogether(exchanges.phases);
  for (std::size_t i = 0; i < exchanges.phases.size(); ++i) {
    phase_ = i;
    run(exchanges.phases[i], i + 1 < exchanges.phases.size() ? &exchanges.phases[i + 1] : nullptr);
  }
  ChunkCost cost;
  cost.busiest = busiest();
  cost.alone = std::max({cost.busiest, highest(ready_), highest(done_)});
  for (std::size_t r = 0; r < done_.size(); ++r) cost.held = std::max(cost.held, done_[r] - begun_[r]);
  return cost;
}

double secondsOf(const ChunkCost& chunk, int chunks, int window) {
  const double together = std::min(chunks, window);
  const double later = std::max(0, chunks - window);
  // A chunk that waits for its last messages keeps the next one out.
  return chunk.alone + (together - 1) * chunk.busiest + later * std::max(chunk.busiest, chunk.held / window);
}

}  // namespace tacc
