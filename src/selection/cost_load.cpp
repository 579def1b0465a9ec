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
constexpr int sampledRanks = 1024, sampledGroups = 6;  // of a level, about

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

double highest(const std::vector<double>& values) { return values.empty() ? 0 : *std::ranges::max_element(values); }

}  // namespace

CostLoad::CostLoad(const CostMap& map) : map_(map) {
  for (int l = 0; l + 1 < map.levels(); ++l) {
    const int groups = map.groups(l);
    const int size = std::max(1, map.ranks() / groups);
    const int count = std::min(groups, std::clamp(sampledRanks / size, 2, sampledGroups));
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
}

double CostLoad::hop(int level, double bytes) const {
  return map_.level(level).alpha + bytes * std::max(map_.level(level).beta, 1 / map_.port());
}

void CostLoad::exchange(const Exchange& e, const To& to) {
  if (e.repeats <= 0) return;
  const int levels = map_.levels();
  std::vector<double> leaving(samples_.size(), 0.0);
  std::vector<double> meets(at(levels), 0.0);  // how many of the sampled meet there
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
      leaving[at(l)] = std::max(leaving[at(l)], count);
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
    if (l > 0 && map_.level(l - 1).uplinkBytesPerSecond > 0)
      perByte = std::max(perByte, leaving[at(l - 1)] / map_.level(l - 1).uplinkBytesPerSecond);
    if (meets[at(l)] == 0) continue;
    const double transfer = std::max(perByte, map_.level(l).beta);
    const double bytes = e.flows ? one : e.bytes;
    const double time = map_.level(l).alpha + bytes * transfer + (e.flows ? cpuOfOne : cpu);
    average += time * meets[at(l)] / sampled;
    slowest = std::max(slowest, time);
    pace = std::max({pace, one * transfer, cpuOfOne});
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
      most = std::max(most, inside * (p - inside));
    }
    uplink_[at(l)] += bytes * most;
    if (map_.level(l).uplinkBytesPerSecond > 0)
      transfer = std::max(transfer, bytes * most / map_.level(l).uplinkBytesPerSecond);
  }
  const double sending = others * map_.machine().overhead;
  const double cpu = 2 * sending + map_.machine().gamma * combined;
  path_ += map_.level(map_.levels() - 1).alpha + cpu - sending +
           (oneByOne ? std::max(sending, transfer) : sending + transfer);
  port_ += others * bytes;
  cpu_ += cpu;
}

namespace {

/// Everybody below the root.
Tree starOf(int p, int root) {
  std::vector<int> parents(at(p), root);
  parents[at(root)] = -1;
  return {parents, root};
}

}  // namespace

void CostLoad::rootToEvery(int root, double bytes, bool oneByOne) {
  const Tree star = starOf(map_.ranks(), root);
  const TreeLoad load{&star, bytes, false, 0, oneByOne};
  down({&load, 1});
}

void CostLoad::everyToRoot(int root, double bytes, double combined, bool oneByOne) {
  const Tree star = starOf(map_.ranks(), root);
  const TreeLoad load{&star, bytes, false, combined / std::max(1, map_.ranks() - 1), oneByOne};
  up({&load, 1});
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

/// Children of one rank share its port evenly; ranks of the same depth (going up: height) send at the same time and
/// share the uplinks of their groups.
double CostLoad::treeTime(const TreeLoad& load, bool isDown) {
  const Tree& tree = *load.tree;
  const int places = tree.size();
  const double overhead = map_.machine().overhead;
  needPorts();
  const auto rankOf = [&](int place) {
    const int rank = tree.rankOf(place);
    return load.members.empty() ? rank : load.members[at(rank)];
  };
  const auto bytesOf = [&](int place) { return load.isPerRank ? load.bytes * tree.node(place).size : load.bytes; };
  // Those of one tier send at about the same time.
  const auto tierOf = [&](int parent, int child) { return isDown ? tree.node(parent).depth : tree.node(child).height; };
  const int tiers = tree.node(tree.root()).height + 1;
  std::vector<int> order(at(places));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](int place) { return isDown ? tree.node(place).depth : tree.node(place).height; });

  // What crosses the uplinks of each group from (to) parents of one tier.
  std::vector<std::vector<double>> crossOut, crossIn;
  for (int l = 0; l + 1 < map_.levels(); ++l) {
    const bool counts = map_.level(l).uplinkBytesPerSecond > 0;
    crossOut.emplace_back(counts ? at(map_.groups(l) * tiers) : 0, 0.0);
    crossIn.emplace_back(crossOut.back());
  }
  const auto forCrossings = [&](int parent, int child, const auto& visit) {
    const int from = rankOf(isDown ? parent : child), to = rankOf(isDown ? child : parent);
    const int meet = map_.meet(from, to);
    for (int l = 0; l < meet; ++l) visit(l, map_.groupOf(from, l), map_.groupOf(to, l));
    return meet;
  };
  for (int parent = 0; parent < places; ++parent) {
    for (const int child : tree.node(parent).children) {
      const int tier = tierOf(parent, child);
      const double bytes = bytesOf(child);
      forCrossings(parent, child, [&](int l, int from, int to) {
        groupOut_[at(l)][at(from)] += bytes;
        groupIn_[at(l)][at(to)] += bytes;
        if (crossOut[at(l)].empty()) return;
        crossOut[at(l)][at(from * tiers + tier)] += bytes;
        crossIn[at(l)][at(to * tiers + tier)] += bytes;
      });
      out_[at(rankOf(isDown ? parent : child))] += bytes;
      in_[at(rankOf(isDown ? child : parent))] += bytes;
    }
    const auto children = static_cast<double>(tree.node(parent).children.size());
    own_[at(rankOf(parent))] += overhead * (children + (parent == tree.root() ? 0 : 1)) +
                                map_.machine().gamma * load.combinedPerChild * children;
  }

  /// Of one message, with what it shares uplinks with.
  const auto transferOf = [&](int parent, int child, double shared) {
    double time = shared / map_.port();
    const int tier = tierOf(parent, child);
    const int meet = forCrossings(parent, child, [&](int l, int from, int to) {
      const double capacity = map_.level(l).uplinkBytesPerSecond;
      if (capacity <= 0) return;
      time = std::max({time, crossOut[at(l)][at(from * tiers + tier)] / capacity,
                       crossIn[at(l)][at(to * tiers + tier)] / capacity});
    });
    return std::max(time, bytesOf(child) * map_.level(meet).beta) + map_.level(meet).alpha;
  };

  std::vector<double> ready(at(places), 0.0);  // down: has its data; up: may send
  double end = 0;
  for (const int parent : order) {
    const std::vector<int>& children = tree.node(parent).children;
    double& mine = ready[at(parent)];
    if (isDown) {
      if (parent != tree.root()) mine += overhead;
      if (!load.oneByOne) mine += overhead * static_cast<double>(children.size());
      std::vector<int> bySize = children;
      std::ranges::sort(bySize, {}, bytesOf);
      double before = 0;  // bytes of those that are over
      for (std::size_t i = 0; i < bySize.size(); ++i) {
        const double bytes = bytesOf(bySize[i]);
        const auto left = static_cast<double>(bySize.size() - i);
        const double start = mine + (load.oneByOne ? overhead * left : 0);  // the largest first
        const int meet = map_.meet(rankOf(parent), rankOf(bySize[i]));
        ready[at(bySize[i])] =
            std::max(mine + (load.oneByOne ? overhead : 0) + transferOf(parent, bySize[i], before + bytes * left),
                     start + hop(meet, bytes));
        before += bytes;
      }
    } else {
      std::vector<int> byTime = children;
      std::ranges::sort(byTime, std::greater(), [&](int child) { return ready[at(child)]; });
      double behind = 0;  // bytes of those that start later, and itself
      double last = 0, handled = 0;
      const double perChild = overhead + map_.machine().gamma * load.combinedPerChild;
      for (const int child : byTime) {
        behind += bytesOf(child);
        last = std::max(last, ready[at(child)] + transferOf(parent, child, behind));
      }
      for (auto child = byTime.rbegin(); child != byTime.rend(); ++child)
        handled = std::max(handled, ready[at(*child)] + transferOf(parent, *child, bytesOf(*child))) + perChild;
      const auto count = static_cast<double>(children.size());
      const bool together = !byTime.empty() && ready[at(byTime.front())] == ready[at(byTime.back())] &&
                            bytesOf(byTime.front()) == bytesOf(byTime.back());
      mine =
          load.oneByOne && !together ? std::max(handled, last + (count > 0 ? perChild : 0)) : last + count * perChild;
      if (parent != tree.root()) mine += overhead;
    }
    end = std::max(end, mine);
  }
  return end;
}

double CostLoad::busiest() const {
  double busiest = std::max({(port_ + std::max(highest(out_), highest(in_))) / map_.port(), cpu_ + highest(own_)});
  for (std::size_t l = 0; l < uplink_.size(); ++l) {
    const double capacity = map_.level(static_cast<int>(l)).uplinkBytesPerSecond;
    if (capacity > 0)
      busiest = std::max(busiest, (uplink_[l] + std::max(highest(groupOut_[l]), highest(groupIn_[l]))) / capacity);
  }
  return busiest;
}

ChunkCost CostLoad::chunk() const {
  return {path_, std::min(busiest() * slowdown_, path_), holds_, stalls_ ? stallingShare : 0.0};
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
