#include "selection/cost_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.hpp"
#include "selection/plan_traffic.hpp"

namespace tacc {

int chunksOf(const CostCall& call) noexcept {
  if (call.chunkBytes <= 0 || call.bytes <= call.chunkBytes) return 1;
  return static_cast<int>(std::ceil(call.bytes / call.chunkBytes));
}

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

/// The plan's messages and steps with the costs of one chunk, and the links that each message crosses.
struct Model {
  PlanTraffic traffic;
  std::vector<int> levels;              // per message: at which its ends meet
  std::vector<std::vector<int>> links;  // per message
  std::vector<double> capacities;       // per link, bytes per second

  Model(const Plan& plan, const CostMap& map, double chunkBytes)
      : traffic(plan, chunkBytes, map.machine().overhead, map.machine().gamma) {
    const int p = plan.request.ranks;
    // Links: ports out, ports in, then out and in of every group of every level, then those inside groups.
    capacities.assign(at(2 * p), map.port());
    std::vector<int> firstLink;
    for (int l = 0; l + 1 < map.levels(); ++l) {
      firstLink.push_back(static_cast<int>(capacities.size()));
      const double capacity = map.level(l).uplinkBytesPerSecond;
      capacities.insert(capacities.end(), at(2 * map.groups(l)), capacity > 0 ? capacity : never);
    }
    std::vector<int> firstWire;
    for (int l = 0; l < map.levels(); ++l) {
      firstWire.push_back(static_cast<int>(capacities.size()));
      capacities.insert(capacities.end(), map.wires(l), map.level(l).linkBytesPerSecond);
    }
    for (const TrafficMessage& message : traffic.messages) {
      levels.push_back(map.meet(message.sender, message.receiver));
      std::vector<int>& crossed = links.emplace_back(std::vector<int>{message.sender, p + message.receiver});
      for (int l = 0; l < levels.back(); ++l) {
        crossed.push_back(firstLink[at(l)] + 2 * map.groupOf(message.sender, l));
        crossed.push_back(firstLink[at(l)] + 2 * map.groupOf(message.receiver, l) + 1);
      }
      const int meet = levels.back();
      map.alongWires(meet, message.sender, message.receiver,
                     [&](std::size_t wire) { crossed.push_back(firstWire[at(meet)] + static_cast<int>(wire)); });
      std::erase_if(crossed, [&](int link) { return capacities[at(link)] == never; });
    }
  }
};

class Simulation {
 public:
  Simulation(const Plan& plan, const CostMap& map, const CostCall& call)
      : map_(map),
        chunks_(chunksOf(call)),
        window_(std::max(1, call.window)),
        model_(plan, map, call.bytes / chunks_),
        arrived_(at(chunks_) * model_.traffic.messages.size(), 0),
        onLink_(model_.capacities.size()),
        isDirty_(model_.capacities.size(), 0),
        ranks_(model_.traffic.steps.size()),
        queues_(model_.traffic.pairs) {}

  double run() {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) admit(r);
    settleLinks();
    while (!events_.empty()) {
      now_ = events_.top().time;
      // What happens together changes the rates of the links once.
      while (!events_.empty() && events_.top().time <= now_ * (1 + 1e-12)) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      settleLinks();
    }
    for (const RankState& rank : ranks_)
      if (rank.completed < chunks_) fail(taccInternalError, "cost model: the plan waits for ever");
    return finished_;
  }

 private:
  struct ChunkState {
    int number = 0;
    std::size_t step = 0;
    int openSends = 0;
    bool isOver = false;
  };

  struct RankState {
    std::vector<ChunkState> active;  // in order
    int admitted = 0, completed = 0;
    bool isBusy = false;
  };

  struct Waiting {
    int message, chunk;
  };

  struct Flow {
    int message = 0, chunk = 0;
    double remaining = 0, rate = 0, since = 0;
    int version = 0;
    bool isOpen = false;
  };

  enum class Kind : std::uint8_t { flowEnd, arrival, cpuEnd };

  struct Event {
    double time;
    Kind kind;
    int which;   // flow; message; rank
    int detail;  // version; chunk; chunk
    bool operator<(const Event& other) const { return time > other.time; }
  };

  void handle(const Event& event) {
    if (event.kind == Kind::flowEnd) {
      if (flows_[at(event.which)].isOpen && flows_[at(event.which)].version == event.detail) endFlow(event.which);
    } else if (event.kind == Kind::arrival) {
      arrived_[at(event.detail) * model_.traffic.messages.size() + at(event.which)] = 1;
      work(model_.traffic.messages[at(event.which)].receiver);
    } else {
      ranks_[at(event.which)].isBusy = false;
      for (ChunkState& chunk : ranks_[at(event.which)].active)
        if (chunk.number == event.detail) finishStep(event.which, chunk);
      retire(event.which);
      work(event.which);
    }
  }

  void admit(int r) {
    RankState& rank = ranks_[at(r)];
    while (rank.admitted < chunks_ && rank.admitted - rank.completed < window_) {
      rank.active.push_back({rank.admitted++, 0, 0, false});
    }
    work(r);
  }

  bool isReady(int r, const ChunkState& chunk) const {
    const auto& steps = model_.traffic.steps[at(r)];
    if (chunk.step == steps.size()) return false;
    return std::ranges::all_of(steps[chunk.step].receives, [&](int m) {
      return arrived_[at(chunk.number) * model_.traffic.messages.size() + at(m)] != 0;
    });
  }

  /// Gives the CPU to the oldest chunk that can go on; steps that cost nothing run at once.
  void work(int r) {
    RankState& rank = ranks_[at(r)];
    bool moved = true;
    while (moved && !rank.isBusy) {
      moved = false;
      for (ChunkState& chunk : rank.active) {
        if (!isReady(r, chunk)) continue;
        const double cpu = model_.traffic.steps[at(r)][chunk.step].seconds;
        if (cpu > 0) {
          rank.isBusy = true;
          events_.push({now_ + cpu, Kind::cpuEnd, r, chunk.number});
        } else {
          finishStep(r, chunk);
        }
        moved = true;
        break;
      }
    }
    retire(r);
  }

  void finishStep(int r, ChunkState& chunk) {
    const TrafficStep& step = model_.traffic.steps[at(r)][chunk.step++];
    for (const int message : step.sends) {
      ++chunk.openSends;
      auto& queue = queues_[at(model_.traffic.messages[at(message)].pair)];
      queue.push_back({message, chunk.number});
      if (queue.size() == 1) startFlow(message, chunk.number);
    }
    finished_ = std::max(finished_, now_);
  }

  /// Lets the next chunks in when the oldest ones are over.
  void retire(int r) {
    RankState& rank = ranks_[at(r)];
    const std::size_t steps = model_.traffic.steps[at(r)].size();
    const auto isOver = [&](const ChunkState& chunk) { return chunk.step == steps && chunk.openSends == 0; };
    int over = 0;
    while (at(over) < rank.active.size() && isOver(rank.active[at(over)])) ++over;
    if (over == 0) return;
    rank.active.erase(rank.active.begin(), rank.active.begin() + over);
    rank.completed += over;
    admit(r);
  }

  void startFlow(int message, int chunk) {
    const TrafficMessage& m = model_.traffic.messages[at(message)];
    int id = static_cast<int>(flows_.size());
    if (free_.empty()) {
      flows_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Flow& flow = flows_[at(id)];
    flow = {message, chunk, m.bytes, 0, now_, flow.version + 1, true};
    for (const int link : model_.links[at(message)]) {
      onLink_[at(link)].push_back(id);
      markDirty(link);
    }
    changed_.push_back(id);
  }

  void endFlow(int id) {
    const Flow flow = flows_[at(id)];
    const TrafficMessage& m = model_.traffic.messages[at(flow.message)];
    flows_[at(id)].isOpen = false;
    free_.push_back(id);
    for (const int link : model_.links[at(flow.message)]) {
      std::erase(onLink_[at(link)], id);
      markDirty(link);
    }
    auto& queue = queues_[at(m.pair)];
    queue.pop_front();
    if (!queue.empty()) startFlow(queue.front().message, queue.front().chunk);
    const double there = now_ + map_.level(model_.levels[at(flow.message)]).alpha;
    events_.push({there, Kind::arrival, flow.message, flow.chunk});
    finished_ = std::max(finished_, there);
    for (ChunkState& chunk : ranks_[at(m.sender)].active)
      if (chunk.number == flow.chunk) --chunk.openSends;
    retire(m.sender);
  }

  void markDirty(int link) {
    if (isDirty_[at(link)]) return;
    isDirty_[at(link)] = 1;
    dirty_.push_back(link);
  }

  void settleLinks() {
    for (const int link : dirty_) {
      isDirty_[at(link)] = 0;
      changed_.insert(changed_.end(), onLink_[at(link)].begin(), onLink_[at(link)].end());
    }
    dirty_.clear();
    std::ranges::sort(changed_);
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const int id : changed_) {
      Flow& flow = flows_[at(id)];
      if (!flow.isOpen) continue;
      const double beta = map_.level(model_.levels[at(flow.message)]).beta;
      double rate = beta > 0 ? 1 / beta : never;
      for (const int link : model_.links[at(flow.message)])
        rate = std::min(rate, model_.capacities[at(link)] / static_cast<double>(onLink_[at(link)].size()));
      if (rate == flow.rate) continue;
      if (flow.rate > 0) flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.since));
      flow.rate = rate;
      flow.since = now_;
      ++flow.version;
      events_.push({rate == never ? now_ : now_ + flow.remaining / rate, Kind::flowEnd, id, flow.version});
    }
    changed_.clear();
  }

  const CostMap& map_;
  int chunks_;
  int window_;
  Model model_;
  double now_ = 0, finished_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::uint8_t> arrived_;  // per chunk and message
  std::vector<Flow> flows_;
  std::vector<int> free_, changed_, dirty_;
  std::vector<std::vector<int>> onLink_;  // flows
  std::vector<std::uint8_t> isDirty_;
  std::vector<RankState> ranks_;
  std::vector<std::deque<Waiting>> queues_;  // per pair: the message that is on its way, and those behind it
};

}  // namespace

double simulate(const Plan& plan, const CostMap& map, const CostCall& call) {
  if (plan.request.ranks != map.ranks())
    fail(taccInvalidArgument, "cost model: the plan is for {} ranks, the machine has {}", plan.request.ranks,
         map.ranks());
  return Simulation(plan, map, call).run();
}

}  // namespace tacc
