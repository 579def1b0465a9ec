#include "node_replay.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace tacc::sim {
namespace {

namespace sg = simgrid::s4u;

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

/// Ways between memories and cores.
class Stage {
 public:
  Stage(const NodeWork& work, const NodeMachine& machine, bool fromMemory)
      : machine_(machine), fromMemory_(fromMemory), zone_(sg::create_full_zone("host")) {
    for (int rank = 0; rank < machine.ranks(); ++rank) {
      cores_.push_back(zone_->create_host("core" + std::to_string(rank), 1e9));
      buffers_.push_back(zone_->create_host("buffers" + std::to_string(rank), 1e9));
      slots_.push_back(zone_->create_host("slots" + std::to_string(rank), 1e9));
    }
    for (int rank = 0; rank < machine.ranks(); ++rank)
      for (const NodeTurn& turn : work.ranks[at(rank)]) {
        for (const NodeRead& read : turn.reads) join(rank, read.owner, read.isOfCall);
        if (turn.writesOfCall > 0) join(rank, rank, true);
      }
    zone_->seal();
  }
  sg::Host* core(int rank) const { return cores_[at(rank)]; }
  /// Returns when the reader's core has read so many bytes.
  void read(int reader, int owner, bool isOfCall, double bytes) const {
    move(memoryOf(owner, isOfCall), core(reader), bytes, machine_.readSeconds(machine_.meet(reader, owner)));
  }
  void write(int rank, double bytes) const {
    if (fromMemory_ && machine_.memory() > 0)
      move(memoryOf(rank, true), core(rank), bytes, machine_.writeSeconds());
    else
      sg::this_actor::sleep_for(bytes * machine_.writeSeconds());
  }

 private:
  sg::Host* memoryOf(int owner, bool isOfCall) const { return (isOfCall ? buffers_ : slots_)[at(owner)]; }
  static void move(sg::Host* from, sg::Host* to, double bytes, double secondsPerByte) {
    if (bytes < 1) return;
    const sg::CommPtr comm = sg::Comm::sendto_init();
    comm->set_rate(1 / secondsPerByte);
    comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(bytes)));
    comm->set_source(from);
    comm->set_destination(to);  // which starts it
    comm->wait();
  }
  /// A link of its own for every kind, tier and group.
  sg::LinkInRoute link(const std::string& name, double bytesPerSecond) {
    sg::Link*& one = links_[name];
    if (one == nullptr) one = zone_->create_link(name, bytesPerSecond)->set_latency(0)->seal();
    return sg::LinkInRoute(one);
  }
  void join(int reader, int owner, bool isOfCall) {
    if (!joined_.insert({{reader, owner, isOfCall}, true}).second) return;
    std::vector<sg::LinkInRoute> route = {link("port" + std::to_string(reader), 1 / machine_.readSeconds(-1))};
    const int tier = machine_.meet(reader, owner);
    for (int t = 0; t < tier; ++t) {
      const double uplink = machine_.tiers()[at(t)].figures.uplink;
      if (uplink <= 0) continue;
      const std::string level = std::to_string(t) + " ";
      route.push_back(link("in" + level + std::to_string(machine_.groupOf(t, reader)), uplink));
      route.push_back(link("out" + level + std::to_string(machine_.groupOf(t, owner)), uplink));
    }
    if (isOfCall && fromMemory_ && machine_.memory() > 0)
      route.push_back(link("memory" + std::to_string(machine_.domainOf(owner)), machine_.memory()));
    zone_->add_route(memoryOf(owner, isOfCall)->get_netpoint(), core(reader)->get_netpoint(), nullptr, nullptr, route,
                     false);
  }

  const NodeMachine& machine_;
  bool fromMemory_;
  sg::NetZone* zone_;
  std::vector<sg::Host*> cores_, buffers_, slots_;
  std::map<std::string, sg::Link*> links_;
  std::map<std::tuple<int, int, bool>, bool> joined_;
};

/// The clocks of all ranks.
class Clocks {
 public:
  explicit Clocks(int ranks) : ticks_(at(ranks), 0), mutex_(sg::Mutex::create()) {
    for (int rank = 0; rank < ranks; ++rank) changed_.push_back(sg::ConditionVariable::create());
  }
  void publish(int rank, int ticks) {
    if (ticks_[at(rank)] >= ticks) return;
    ticks_[at(rank)] = ticks;
    changed_[at(rank)]->notify_all();
  }
  void await(int rank, int ticks) {
    if (ticks_[at(rank)] >= ticks) return;
    const std::unique_lock<sg::Mutex> lock(*mutex_);
    while (ticks_[at(rank)] < ticks) changed_[at(rank)]->wait(lock);
  }

 private:
  std::vector<int> ticks_;
  sg::MutexPtr mutex_;
  std::vector<sg::ConditionVariablePtr> changed_;
};

struct Show {
  const NodeWork& work;
  const NodeMachine& machine;
  const Stage& stage;
  Clocks& clocks;
  int chunks;
  double blockBytes;
};

void runRank(const Show& show, int rank) {
  const std::vector<NodeTurn>& turns = show.work.ranks[at(rank)];
  const int advance = advanceOf(show.work), span = show.work.rounds - 1;
  const int ticks = advance * (show.chunks - 1) + span + 1;
  for (int tick = 0; tick < ticks; ++tick) {
    bool worked = false;
    const int youngest = std::min(tick / advance, show.chunks - 1);
    const int oldest = tick < span ? 0 : (tick - span + advance - 1) / advance;
    for (int chunk = youngest; chunk >= oldest; --chunk) {
      const int round = tick - advance * chunk;
      const auto turn = std::ranges::lower_bound(turns, round, {}, &NodeTurn::round);
      if (turn == turns.end() || turn->round != round) continue;
      show.clocks.publish(rank, tick);
      for (std::size_t i = 0; i < turn->senders.size(); ++i) {
        show.clocks.await(turn->senders[i], advance * chunk + turn->sendRounds[i] + 1);
        sg::this_actor::sleep_for(show.machine.latency(show.machine.meet(rank, turn->senders[i])));
      }
      for (const NodeRead& read : turn->reads)
        show.stage.read(rank, read.owner, read.isOfCall, read.blocks * show.blockBytes);
      sg::this_actor::sleep_for(turn->writes * show.blockBytes * show.machine.writeSeconds());
      if (turn->writesOfCall > 0) show.stage.write(rank, turn->writesOfCall * show.blockBytes);
      worked = true;
    }
    if (worked) show.clocks.publish(rank, tick + 1);
  }
  show.clocks.publish(rank, ticks);
}

}  // namespace

double replayOnNode(const NodeWork& work, const NodeMachine& machine, const NodeCall& call) {
  std::string name = "tacc_sim", quiet = "--log=root.thres:error";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  int count = 2;
  sg::Engine engine(&count, arguments);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("surf/precision:1e-12");
  sg::Engine::set_config("contexts/stack-size:128");
  const int chunks = chunksOf(work, call);
  const Stage stage(work, machine, comesFromMemory(work, machine, call));
  Clocks clocks(machine.ranks());
  const Show show{work, machine, stage, clocks, chunks, call.bytes / work.blocks / chunks};
  double end = 0;
  for (int rank = 0; rank < machine.ranks(); ++rank)
    sg::Actor::create(std::to_string(rank), stage.core(rank), [&show, &end, rank] {
      runRank(show, rank);
      end = std::max(end, sg::Engine::get_clock());
    });
  engine.run();
  return end;
}

}  // namespace tacc::sim
