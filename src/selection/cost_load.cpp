#include "selection/cost_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tacc {
namespace {

// Some ranks wait for slower ones in one exchange, others in the next: so much of the difference is lost in each. From
// comparison with the simulator, as stallingShare.
constexpr double waitingShare = 0.2;
// What is lost between chunks, of the time in which the busiest link could be idle.
constexpr double stallingShare = 0.3;
constexpr int sampledRanks = 1024, sampledGroups = 6;  // of a level, about; all of a machine of fewer ranks

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

double highest(const std::vector<double>& values) { return values.empty() ? 0 : *std::ranges::max_element(values); }

}  // namespace

CostLoad::CostLoad(const CostMap& map) : map_(map) {
  for (int l = 0; l + 1 < map.levels(); ++l) {
    const int groups = map.groups(l);
    const int size = std::max(1, map.ranks() / groups);
    const int most = map.ranks() <= sampledRanks ? groups : std::clamp(sampledRanks / size, 2, sampledGroups);
    const int count = std::min(groups, most);
    std::vector<Sample> samples;
    for (int i = 0; i < count; ++i) {
      const int group = count == 1 ? 0 : static_cast<int>(static_cast<std::int64_t>(i) * (groups - 1) / (count - 1));
      samples.push_back({group, map.beginOf(group, l), map.endOf(group, l)});
    }
    samples_.push_back(std::move(samples));
    groupOut_.emplace_back(at(groups), 0.0);
    groupIn_.emplace_back(at(groups), 0.0);
  }
  uplink_.assign(samples_.size(), 0.0);
  for (int l = 0; l < map.levels(); ++l) wire_.emplace_back(map.wires(l), 0.0);
}

double CostLoad::hop(int level, double bytes) const {
  return map_.level(level).alpha + bytes * std::max(map_.level(level).beta, 1 / map_.port());
}

double CostLoad::perByteOf(int level, int group) const {
  const double capacity = map_.level(level).uplinks.of(group);
  return capacity > 0 ? 1 / capacity : 0;
}

void CostLoad::exchange(const Exchange& e, const To& to) {
  if (e.repeats <= 0) return;
  const int levels = map_.levels();
  std::vector<double> leaving(samples_.size(), 0.0);  // seconds for a byte of every rank, at the busiest uplink
  std::vector<double> meets(at(levels), 0.0);         // how many of the sampled meet there
  const auto look = [&](int r) {
    const int other = to(r);
    if (other == r) return 0;
    const int meet = map_.meet(r, other);
    ++meets[at(meet)];
    return meet;
  };
  for (int l = 0; l + 1 < levels; ++l) {
    for (const Sample& sample : samples_[at(l)]) {
      double count = 0;
      for (int r = sample.begin; r < sample.end; ++r) count += look(r) > l ? 1 : 0;
      leaving[at(l)] = std::max(leaving[at(l)], count * perByteOf(l, sample.group));
    }
  }
  if (levels == 1) {
    for (int r = 0; r < std::min(map_.ranks(), sampledRanks); ++r) look(r);
  }
  const double sampled = std::accumulate(meets.begin(), meets.end(), 0.0);
  if (sampled == 0) return;
  const double one = e.bytes / std::max(1.0, e.messages);
  const double cpuOfOne = 2 * map_.machine().overhead + map_.machine().gamma * e.combined / std::max(1.0, e.messages);
  const double cpu = cpuOfOne * e.messages;
  double average = 0, slowest = 0, pace = 0, perByte = 1 / map_.port();
  for (int l = 0; l < levels; ++l) {
    if (l > 0) perByte = std::max(perByte, leaving[at(l - 1)]);
    if (meets[at(l)] == 0) continue;
    const double transfer = std::max(perByte, map_.level(l).beta);
    const double bytes = e.flows ? one : e.bytes;
    const double besides = map_.level(l).alpha + (e.flows ? cpuOfOne : cpu);
    double usual = transfer, longest = transfer;
    if (map_.wires(l) > 0) {
      const Sharing sharing = shareWires(l, to, e.loads ? e.repeats * e.bytes : 0);
      usual = std::max(usual, sharing.average / map_.level(l).linkBytesPerSecond);
      longest = std::max(longest, sharing.most / map_.level(l).linkBytesPerSecond);
    }
    average += (besides + bytes * usual) * meets[at(l)] / sampled;
    slowest = std::max(slowest, besides + bytes * longest);
    pace = std::max({pace, one * longest, cpuOfOne});
  }
  if (e.flows) {
    // Several messages follow one another: while the last of them leave, the first are further on.
    path_ += std::max(e.repeats * e.messages * pace + average - std::min(pace, average),
                      e.repeats * average + (e.messages - 1) * pace);
  } else {
    path_ += e.repeats * (average + waitingShare * (slowest - average));
  }
  if (!e.loads) return;
  port_ += e.repeats * e.bytes;
  cpu_ += e.repeats * cpu;
  for (std::size_t l = 0; l < uplink_.size(); ++l) uplink_[l] += e.repeats * e.bytes * leaving[l];
}

void CostLoad::everyToEvery(double bytes, double combined, bool oneByOne) {
  const int p = map_.ranks();
  const double others = p - 1;
  double transfer = bytes * std::max(others / map_.port(), map_.level(map_.levels() - 1).beta);
  for (int l = 0; l + 1 < map_.levels(); ++l) {
    double most = 0;
    for (const Sample& sample : samples_[at(l)]) {
      const double inside = sample.end - sample.begin;
      most = std::max(most, inside * (p - inside) * perByteOf(l, sample.group));
    }
    uplink_[at(l)] += bytes * most;
    transfer = std::max(transfer, bytes * most);
  }
  for (int l = 0; l < map_.levels(); ++l) {
    if (map_.wires(l) == 0) continue;
    const std::vector<double> ways = everyWay(l);
    for (std::size_t wire = 0; wire < ways.size(); ++wire) wire_[at(l)][wire] += bytes * ways[wire];
    transfer = std::max(transfer, bytes * highest(ways) / map_.level(l).linkBytesPerSecond);
  }
  const double sending = others * map_.machine().overhead;
  const double cpu = 2 * sending + map_.machine().gamma * combined;
  path_ += map_.level(map_.levels() - 1).alpha + cpu - sending +
           (oneByOne ? std::max(sending, transfer) : sending + transfer);
  port_ += others * bytes;
  cpu_ += cpu;
}

void CostLoad::star(int root, double bytes, double combined, bool oneByOne, bool isDown) {
  const double others = map_.ranks() - 1;
  double transfer = std::max(others * bytes / map_.port(root), bytes / map_.port());
  const int meet = map_.levels() - 1;
  for (int l = 0; l + 1 < map_.levels(); ++l) {
    const int mine = map_.groupOf(root, l);
    const double inside = map_.endOf(mine, l) - map_.beginOf(mine, l);
    double longest = (map_.ranks() - inside) * perByteOf(l, mine);  // seconds a byte
    for (const Sample& sample : samples_[at(l)])
      if (sample.group != mine) longest = std::max(longest, (sample.end - sample.begin) * perByteOf(l, sample.group));
    auto& near = isDown ? groupOut_[at(l)] : groupIn_[at(l)];
    auto& far = isDown ? groupIn_[at(l)] : groupOut_[at(l)];
    near[at(mine)] += (map_.ranks() - inside) * bytes;
    for (const Sample& sample : samples_[at(l)])
      if (sample.group != mine) far[at(sample.group)] += (sample.end - sample.begin) * bytes;
    transfer = std::max(transfer, longest * bytes);
  }
  for (int l = 0; l < map_.levels(); ++l) {
    if (map_.wires(l) == 0) continue;
    std::vector<double>& wire = wire_[at(l)];
    for (int r = 0; r < map_.ranks(); ++r) {
      if (r == root || map_.meet(root, r) != l) continue;
      map_.alongWires(l, isDown ? root : r, isDown ? r : root, [&](std::size_t w) { wire[w] += bytes; });
    }
    transfer = std::max(transfer, highest(wire) / map_.level(l).linkBytesPerSecond);
  }
  transfer = std::max(transfer, bytes * map_.level(meet).beta) + map_.level(meet).alpha;
  const double overhead = map_.machine().overhead, work = others * overhead + map_.machine().gamma * combined;
  // Down: handling of one message after the other goes on while they are sent. Up: they all arrive at the end.
  path_ += isDown && oneByOne ? std::max(overhead + transfer, work + hop(meet, bytes)) + overhead
                              : work + transfer + overhead;
  needPorts();
  (isDown ? out_ : in_)[at(root)] += others * bytes;
  own_[at(root)] += work;
}

void CostLoad::local(double bytes) {
  path_ += map_.machine().gamma * bytes;
  cpu_ += map_.machine().gamma * bytes;
}

void CostLoad::needPorts() {
  if (!out_.empty()) return;
  out_.assign(at(map_.ranks()), 0.0);
  in_ = own_ = out_;
}

void CostLoad::atPort(int rank, double out, double in) {
  needPorts();
  out_[at(rank)] += out;
  in_[at(rank)] += in;
}

void CostLoad::loadEdge(int from, int to, double bytes) {
  atPort(from, bytes, 0);
  atPort(to, 0, bytes);
  const int meet = map_.meet(from, to);
  for (int l = 0; l < meet; ++l) {
    groupOut_[at(l)][at(map_.groupOf(from, l))] += bytes;
    groupIn_[at(l)][at(map_.groupOf(to, l))] += bytes;
  }
  map_.alongWires(meet, from, to, [&](std::size_t wire) { wire_[at(meet)][wire] += bytes; });
}

void CostLoad::down(std::span<const TreeLoad> trees) {
  double time = 0;
  for (const TreeLoad& load : trees) time = std::max(time, treeTime(load, true));
  path_ += time;
}

void CostLoad::up(std::span<const TreeLoad> trees) {
  double time = 0;
  for (const TreeLoad& load : trees) time = std::max(time, treeTime(load, false));
  path_ += time;
}

double CostLoad::busiest() const {
  double atPort = port_ / map_.port();
  for (std::size_t r = 0; r < out_.size(); ++r)
    atPort = std::max(atPort, (port_ + std::max(out_[r], in_[r])) / map_.port(static_cast<int>(r)));
  double busiest = slowdown_ * std::max(atPort, cpu_ + highest(own_));
  for (int l = 0; l < static_cast<int>(uplink_.size()); ++l) {
    double own = 0;  // of trees and the like
    for (int g = 0; g < map_.groups(l); ++g)
      own = std::max(own, std::max(groupOut_[at(l)][at(g)], groupIn_[at(l)][at(g)]) * perByteOf(l, g));
    busiest = std::max(busiest, uplink_[at(l)] + own);
  }
  for (int l = 0; l < map_.levels(); ++l)
    if (map_.wires(l) > 0) busiest = std::max(busiest, highest(wire_[at(l)]) / map_.level(l).linkBytesPerSecond);
  return busiest;
}

ChunkCost CostLoad::chunk() const {
  // Paths see ranks of one tier share a link, not those of others.
  const double busy = busiest();
  return {std::max(path_, busy), busy, holds_, stalls_ ? stallingShare : 0.0};
}

double secondsOf(const ChunkCost& chunk, int chunks, int window) {
  const double together = std::min(chunks, window);
  const double later = std::max(0, chunks - window);
  // A chunk that waits for its last messages keeps the next one out; what is busy then stands still for a while.
  const double held = chunk.holds ? chunk.alone / window : 0.0;
  return chunk.alone + (together - 1) * chunk.busiest +
         later * (std::max(chunk.busiest, held) + chunk.stalling * std::min(chunk.busiest, held));
}

}  // namespace tacc
