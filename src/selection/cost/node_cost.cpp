#include "selection/cost/node_cost.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/index.hpp"

namespace tacc {
namespace {

/// What the engine does for a call with a plan, however short, that it does not for the eager route: the
/// plan of an allreduce takes 3.5 us for 512 bytes on 4 ranks, of which its lines account for 1.
constexpr double planOverhead = 2e-6;

/// How much longer a core reads what `readers` cores read at the same time: measured of posts on 16 cores of one L3,
/// where reading is 1.5, 2.4 and 2.3 times as slow with 3, 7 and 15 readers as with one; more than 15 were not there.
double crowding(int readers) { return 1 + 0.5 * std::log2(std::clamp(readers, 1, 15)); }

/// Seconds for which borders of groups, each way, and memory domains are at work.
class Loads {
 public:
  explicit Loads(const NodeMachine& machine) : machine_(machine), memory_(at(machine.domains()), 0.0) {
    for (int t = 0; t < static_cast<int>(machine.tiers().size()); ++t) {
      in_.emplace_back(at(machine.groups(t)), 0.0);
      out_.emplace_back(at(machine.groups(t)), 0.0);
    }
  }
  void clear() {
    for (auto* way : {&in_, &out_})
      for (std::vector<double>& groups : *way) std::ranges::fill(groups, 0.0);
    std::ranges::fill(memory_, 0.0);
  }
  /// `bytes` of `owner`'s memory to `reader`. Calls visit(seconds of load so far) for every one on the way.
  template <class Visit>
  void along(int reader, int owner, double bytes, bool fromMemory, const Visit& visit) {
    const int tier = machine_.meet(reader, owner);
    for (int t = 0; t < tier; ++t) {
      const double uplink = machine_.tiers()[at(t)].figures.uplink;
      if (uplink <= 0) continue;
      visit(in_[at(t)][at(machine_.groupOf(t, reader))], bytes / uplink);
      visit(out_[at(t)][at(machine_.groupOf(t, owner))], bytes / uplink);
    }
    if (fromMemory && machine_.memory() > 0) visit(memory_[at(machine_.domainOf(owner))], bytes / machine_.memory());
  }
  double busiest() const {
    double most = 0;
    for (const auto* way : {&in_, &out_})
      for (const std::vector<double>& groups : *way)
        for (const double load : groups) most = std::max(most, load);
    for (const double load : memory_) most = std::max(most, load);
    return most;
  }

 private:
  const NodeMachine& machine_;
  std::vector<std::vector<double>> in_, out_;  // [tier][group]
  std::vector<double> memory_;
};

class Play {
 public:
  Play(const NodeWork& work, const NodeMachine& machine, double blockBytes, bool fromMemory)
      : work_(work),
        machine_(machine),
        blockBytes_(blockBytes),
        fromMemory_(fromMemory),
        round_(machine),
        whole_(machine),
        next_(work.ranks.size(), 0),
        ready_(work.ranks.size(), 0),
        busy_(work.ranks.size(), 0),
        waits_(work.ranks.size(), 0),
        ends_(work.ranks.size()) {}

  NodeCost run() {
    for (int round = 0; round < work_.rounds; ++round) {
      round_.clear();
      const auto load = [](double& soFar, double seconds) { soFar += seconds; };
      overRound(round, [&](int rank, const NodeTurn& turn) {
        overMemory(rank, turn, round_, load);
        overMemory(rank, turn, whole_, load);
      });
      overRound(round, [&](int rank, const NodeTurn& turn) { take(rank, turn); });
      for (std::size_t rank = 0; rank < next_.size(); ++rank)
        if (isTurn(rank, round)) ++next_[rank];
    }
    NodeCost cost;
    cost.alone = std::ranges::max(ready_);
    const auto busiest = std::ranges::max_element(busy_);
    cost.cores = *busiest;
    cost.waits = waits_[static_cast<std::size_t>(busiest - busy_.begin())];
    cost.links = whole_.busiest();
    return cost;
  }

 private:
  bool isTurn(std::size_t rank, int round) const {
    return next_[rank] < work_.ranks[rank].size() && work_.ranks[rank][next_[rank]].round == round;
  }
  template <class Visit>
  void overRound(int round, const Visit& visit) {
    for (std::size_t rank = 0; rank < next_.size(); ++rank)
      if (isTurn(rank, round)) visit(static_cast<int>(rank), work_.ranks[rank][next_[rank]]);
  }
  template <class Visit>
  void overMemory(int rank, const NodeTurn& turn, Loads& loads, const Visit& visit) {
    for (const NodeRead& read : turn.reads)
      loads.along(rank, read.owner, read.blocks * blockBytes_, read.isOfCall && fromMemory_, visit);
    if (turn.writesOfCall > 0) loads.along(rank, rank, turn.writesOfCall * blockBytes_, fromMemory_, visit);
  }

  void take(int rank, const NodeTurn& turn) {
    double start = ready_[at(rank)], looking = 0;
    for (std::size_t i = 0; i < turn.senders.size(); ++i) {
      const double latency = machine_.latency(machine_.meet(rank, turn.senders[i]));
      start = std::max(start, endOf(turn.senders[i], turn.sendRounds[i]) + latency);
      looking += latency;
    }
    double core = (turn.writes + turn.writesOfCall) * machine_.writeSeconds();
    for (const NodeRead& read : turn.reads) core += read.blocks * machine_.readSeconds(machine_.meet(rank, read.owner));
    core *= blockBytes_;
    double slowest = core;
    overMemory(rank, turn, round_, [&](double& soFar, double) { slowest = std::max(slowest, soFar); });
    const double end = std::max(start, ready_[at(rank)] + looking) + slowest;
    ends_[at(rank)].push_back(end);
    ready_[at(rank)] = end;
    busy_[at(rank)] += core + looking;
    waits_[at(rank)] += looking;
  }

  /// When a rank had finished all of its work up to that round.
  double endOf(int rank, int round) const {
    const std::vector<NodeTurn>& turns = work_.ranks[at(rank)];
    std::size_t done = ends_[at(rank)].size();
    while (done > 0 && turns[done - 1].round > round) --done;
    return done == 0 ? 0 : ends_[at(rank)][done - 1];
  }

  const NodeWork& work_;
  const NodeMachine& machine_;
  double blockBytes_;
  bool fromMemory_;
  Loads round_, whole_;
  std::vector<std::size_t> next_;
  std::vector<double> ready_, busy_, waits_;
  std::vector<std::vector<double>> ends_;  // [rank][turn]
};

/// Bytes of a slot, of those of all chunks that are under way.
double roomOf(const NodeWork& work, const NodeCall& call) {
  const double depth = std::floor(static_cast<double>(work.slotReach) / advanceOf(work)) + 2;
  return static_cast<double>(call.arenaBytes) / (depth * work.volume);
}

double callBlocks(const NodeWork& work) {
  double most = 0;
  for (const std::vector<NodeTurn>& turns : work.ranks) {
    double mine = 0;
    for (const NodeTurn& turn : turns) {
      mine += turn.writesOfCall;
      for (const NodeRead& read : turn.reads) mine += read.isOfCall ? read.blocks : 0;
    }
    most = std::max(most, mine);
  }
  return most;
}

}  // namespace

int advanceOf(const NodeWork& work) noexcept { return std::max(1, (work.rounds - 1 + 3) / 4); }

bool comesFromMemory(const NodeWork& work, const NodeMachine& machine, const NodeCall& call) {
  return callBlocks(work) * call.bytes / work.blocks > machine.cacheBytes();
}

bool fits(const NodeWork& work, const NodeCall& call) { return work.volume == 0 || roomOf(work, call) >= 128; }

int chunksOf(const NodeWork& work, const NodeCall& call) {
  if (work.volume == 0) return 1;
  const double wanted = static_cast<double>(call.stagingBytes) / work.volume;
  const double block = std::max(64.0, std::min(roomOf(work, call), wanted));
  return static_cast<int>(std::clamp(std::ceil(call.bytes / (block * work.blocks)), 1.0, 1e9));
}

NodeCost priceOnNode(const NodeWork& work, const NodeMachine& machine, const NodeCall& call) {
  const int chunks = chunksOf(work, call);
  const double blockBytes = call.bytes / work.blocks / chunks;
  const bool fromMemory = comesFromMemory(work, machine, call);
  NodeCost cost = Play(work, machine, blockBytes, fromMemory).run();
  cost.chunks = chunks;
  cost.seconds = cost.alone + (chunks - 1) * std::max(cost.cores, cost.links);
  cost.cores *= chunks;
  cost.waits *= chunks;
  cost.links *= chunks;
  return cost;
}

double priceEager(const EagerPosts& posts, const NodeMachine& machine) {
  Loads loads(machine);
  const auto readers = [&](const auto& visit) {
    for (int reader = 0; reader < machine.ranks(); ++reader)
      for (int owner = 0; owner < machine.ranks(); ++owner) {
        if (owner == reader) continue;
        const bool reads = posts.root < 0 || (posts.fromRoot ? owner == posts.root : reader == posts.root);
        visit(reader, owner, reads ? posts.reads : 0.0);
      }
  };
  const double crowd = crowding(posts.root >= 0 && !posts.fromRoot ? 1 : machine.ranks() - 1);
  std::vector<double> cores(static_cast<std::size_t>(machine.ranks()), posts.posted * machine.writeSeconds());
  readers([&](int reader, int owner, double bytes) {
    const int tier = machine.meet(reader, owner);
    if (bytes > 0 || posts.root < 0)
      cores[at(reader)] += machine.latency(tier) + bytes * machine.readSeconds(tier) * crowd;
    loads.along(reader, owner, bytes, false, [](double& soFar, double seconds) { soFar += seconds; });
  });
  return std::max(std::ranges::max(cores), loads.busiest());
}

double priceEntry(const NodeMachine& machine) { return priceEager({}, machine) + planOverhead; }

}  // namespace tacc
