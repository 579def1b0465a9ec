#include "selection/cost_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
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
constexpr int nobody = -1;

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

/// The plan's messages and steps with the costs of one chunk, and the links that each message crosses.
struct Model {
  PlanTraffic traffic;
  std::vector<double> alphas, rates;  // per message: its latency, and what a stream carries between its ends
  std::vector<int> links;             // of all messages, those of one after the other
  std::vector<std::size_t> ends;      // per message: where its links end
  std::vector<double> capacities;     // per link, bytes per second
  std::vector<int> firstSteps;        // per rank: the number of its first step among those of all
  std::vector<int> receivingSteps;    // per message
  std::vector<int> awaited;           // per step: messages that it needs

  Model(const Plan& plan, const CostMap& map, double chunkBytes)
      : traffic(
            plan, chunkBytes, [&](int a, int b) { return map.overhead(map.meet(a, b)); }, map.machine().gamma) {
    nameLinks(plan, map);
    firstSteps.push_back(0);
    receivingSteps.resize(traffic.messages.size());
    for (const std::vector<TrafficStep>& steps : traffic.steps) {
      for (const TrafficStep& step : steps) {
        for (const int message : step.receives) receivingSteps[at(message)] = static_cast<int>(awaited.size());
        awaited.push_back(static_cast<int>(step.receives.size()));
      }
      firstSteps.push_back(static_cast<int>(awaited.size()));
    }
  }

  std::span<const int> linksOf(int message) const {
    const std::size_t begin = message == 0 ? 0 : ends[at(message) - 1];
    return std::span(links).subspan(begin, ends[at(message)] - begin);
  }

 private:
  /// Ports out, ports in, then out and in of every group of every level, then the links inside groups.
  void nameLinks(const Plan& plan, const CostMap& map) {
    const int p = plan.request.ranks;
    const auto limit = [](double capacity) { return capacity > 0 ? capacity : never; };
    for (int r = 0; r < 2 * p; ++r) capacities.push_back(map.port(r % p));
    std::vector<int> firstLink, firstWire;
    for (int l = 0; l + 1 < map.levels(); ++l) {
      firstLink.push_back(static_cast<int>(capacities.size()));
      for (int g = 0; g < map.groups(l); ++g) capacities.insert(capacities.end(), 2, limit(map.level(l).uplinks.of(g)));
    }
    for (int l = 0; l < map.levels(); ++l) {
      firstWire.push_back(static_cast<int>(capacities.size()));
      capacities.insert(capacities.end(), map.wires(l), map.level(l).linkBytesPerSecond);
    }
    const auto cross = [&](int link) {
      if (capacities[at(link)] != never) links.push_back(link);
    };
    for (const TrafficMessage& message : traffic.messages) {
      const int meet = map.meet(message.sender, message.receiver);
      alphas.push_back(map.level(meet).alpha);
      rates.push_back(map.level(meet).beta > 0 ? 1 / map.level(meet).beta : never);
      cross(message.sender);
      cross(p + message.receiver);
      for (int l = 0; l < meet; ++l) {
        cross(firstLink[at(l)] + 2 * map.groupOf(message.sender, l));
        cross(firstLink[at(l)] + 2 * map.groupOf(message.receiver, l) + 1);
      }
      map.alongWires(meet, message.sender, message.receiver,
                     [&](std::size_t wire) { cross(firstWire[at(meet)] + static_cast<int>(wire)); });
      ends.push_back(links.size());
    }
  }
};

class Simulation {
 public:
  Simulation(Model model, int chunks, int window)
      : chunks_(chunks),
        window_(std::max(1, window)),
        model_(std::move(model)),
        completed_(at(chunks), 0.0),
        onLink_(model_.capacities.size()),
        isDirty_(model_.capacities.size(), 0),
        ranks_(model_.traffic.steps.size()),
        queues_(model_.traffic.pairs) {
    for (int c = 0; c < chunks; ++c) awaited_.insert(awaited_.end(), model_.awaited.begin(), model_.awaited.end());
  }

  /// False: given up, as it would be more work than that.
  bool run(double mostWork) {
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) admit(r);
    settleLinks();
    while (!events_.empty()) {
      if (work_ > mostWork) return false;
      now_ = events_.top().time;
      // What happens together changes the rates of the links once.
      while (!events_.empty() && events_.top().time <= now_ * (1 + 1e-12)) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
        ++work_;
      }
      settleLinks();
    }
    if (completed() < chunks_) fail(taccInternalError, "cost model: the plan waits for ever");
    return true;
  }

  double finished() const { return finished_; }
  double work() const { return work_; }
  /// Chunks that all ranks are done with.
  int completed() const { return std::ranges::min_element(ranks_, {}, &RankState::completed)->completed; }
  /// When the last rank was done with one of those.
  double completedAt(int chunk) const { return completed_[at(chunk)]; }

 private:
  struct ChunkState {
    int number = 0;
    int step = 0;
    int openSends = 0;
  };

  struct RankState {
    std::vector<ChunkState> active;  // in order
    int admitted = 0, completed = 0;
    bool isBusy = false;
  };

  struct Flow {
    int message = 0, chunk = 0;
    double remaining = 0, rate = 0, since = 0;
    int version = 0;
    bool isOpen = false, isChanged = false;
  };

  /// Messages of one pair of ranks follow one another: the first is on its way.
  struct Queue {
    int first = nobody, last = nobody;
  };
  struct Waiting {
    int message, chunk, next;
  };

  enum class Kind : std::uint8_t { flowEnd, arrival, cpuEnd };

  struct Event {
    double time;
    Kind kind;
    int which;   // flow; message; rank
    int detail;  // version; chunk; chunk
    bool operator<(const Event& other) const { return time > other.time; }
  };

  int stepsOf(int r) const { return model_.firstSteps[at(r) + 1] - model_.firstSteps[at(r)]; }
  int& awaitedBy(int chunk, int step) { return awaited_[at(chunk) * model_.awaited.size() + at(step)]; }

  void handle(const Event& event) {
    if (event.kind == Kind::flowEnd) {
      if (flows_[at(event.which)].isOpen && flows_[at(event.which)].version == event.detail) endFlow(event.which);
    } else if (event.kind == Kind::arrival) {
      if (--awaitedBy(event.detail, model_.receivingSteps[at(event.which)]) == 0)
        work(model_.traffic.messages[at(event.which)].receiver);
    } else {
      ranks_[at(event.which)].isBusy = false;
      for (ChunkState& chunk : ranks_[at(event.which)].active)
        if (chunk.number == event.detail) finishStep(event.which, chunk);
      work(event.which);
    }
  }

  void admit(int r) {
    RankState& rank = ranks_[at(r)];
    while (rank.admitted < chunks_ && rank.admitted - rank.completed < window_)
      rank.active.push_back({rank.admitted++, 0, 0});
    work(r);
  }

  bool isReady(int r, const ChunkState& chunk) {
    return chunk.step < stepsOf(r) && awaitedBy(chunk.number, model_.firstSteps[at(r)] + chunk.step) == 0;
  }

  /// Gives the CPU to the oldest chunk that can go on; steps that cost nothing run at once.
  void work(int r) {
    RankState& rank = ranks_[at(r)];
    while (!rank.isBusy) {
      const auto next = std::ranges::find_if(rank.active, [&](const ChunkState& chunk) { return isReady(r, chunk); });
      if (next == rank.active.end()) break;
      const double cpu = model_.traffic.steps[at(r)][at(next->step)].seconds;
      if (cpu > 0) {
        rank.isBusy = true;
        events_.push({now_ + cpu, Kind::cpuEnd, r, next->number});
      } else {
        finishStep(r, *next);
      }
    }
    retire(r);
  }

  void finishStep(int r, ChunkState& chunk) {
    const TrafficStep& step = model_.traffic.steps[at(r)][at(chunk.step++)];
    for (const int message : step.sends) {
      ++chunk.openSends;
      queue(message, chunk.number);
    }
    finished_ = std::max(finished_, now_);
  }

  /// Lets the next chunks in when the oldest ones are over.
  void retire(int r) {
    RankState& rank = ranks_[at(r)];
    const int steps = stepsOf(r);
    std::size_t over = 0;
    while (over < rank.active.size() && rank.active[over].step == steps && rank.active[over].openSends == 0) ++over;
    if (over == 0) return;
    for (std::size_t i = 0; i < over; ++i) {
      double& completed = completed_[at(rank.active[i].number)];
      completed = std::max(completed, now_);
    }
    rank.active.erase(rank.active.begin(), rank.active.begin() + static_cast<std::ptrdiff_t>(over));
    rank.completed += static_cast<int>(over);
    admit(r);
  }

  void queue(int message, int chunk) {
    Queue& queue = queues_[at(model_.traffic.messages[at(message)].pair)];
    int number = static_cast<int>(waiting_.size());
    if (freeWaiting_.empty()) {
      waiting_.push_back({message, chunk, nobody});
    } else {
      number = freeWaiting_.back();
      freeWaiting_.pop_back();
      waiting_[at(number)] = {message, chunk, nobody};
    }
    if (queue.last != nobody) waiting_[at(queue.last)].next = number;
    const bool isFirst = queue.first == nobody;
    if (isFirst) queue.first = number;
    queue.last = number;
    if (isFirst) startFlow(message, chunk);
  }

  void startNext(int pair) {
    Queue& queue = queues_[at(pair)];
    freeWaiting_.push_back(queue.first);
    queue.first = waiting_[at(queue.first)].next;
    if (queue.first == nobody) {
      queue.last = nobody;
      return;
    }
    const Waiting next = waiting_[at(queue.first)];
    startFlow(next.message, next.chunk);
  }

  void startFlow(int message, int chunk) {
    int id = static_cast<int>(flows_.size());
    if (free_.empty()) {
      flows_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Flow& flow = flows_[at(id)];
    flow = {message, chunk, model_.traffic.messages[at(message)].bytes, 0, now_, flow.version + 1, true, false};
    for (const int link : model_.linksOf(message)) {
      onLink_[at(link)].push_back(id);
      markDirty(link);
    }
    change(id);
  }

  void endFlow(int id) {
    const Flow flow = flows_[at(id)];
    const TrafficMessage& m = model_.traffic.messages[at(flow.message)];
    flows_[at(id)].isOpen = false;
    free_.push_back(id);
    for (const int link : model_.linksOf(flow.message)) {
      std::vector<int>& others = onLink_[at(link)];
      *std::ranges::find(others, id) = others.back();
      others.pop_back();
      markDirty(link);
    }
    startNext(m.pair);
    const double there = now_ + model_.alphas[at(flow.message)];
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

  void change(int id) {
    if (std::exchange(flows_[at(id)].isChanged, true)) return;
    changed_.push_back(id);
  }

  void settleLinks() {
    for (const int link : dirty_) {
      isDirty_[at(link)] = 0;
      for (const int id : onLink_[at(link)]) change(id);
    }
    dirty_.clear();
    work_ += static_cast<double>(changed_.size());
    for (const int id : changed_) {
      Flow& flow = flows_[at(id)];
      flow.isChanged = false;
      if (!flow.isOpen) continue;
      double rate = model_.rates[at(flow.message)];
      for (const int link : model_.linksOf(flow.message))
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

  int chunks_;
  int window_;
  Model model_;
  double now_ = 0, finished_ = 0;
  double work_ = 0;                // events, and messages whose rate was found anew
  std::vector<double> completed_;  // per chunk
  std::priority_queue<Event> events_;
  std::vector<int> awaited_;  // per chunk and step: messages that have not come
  std::vector<Flow> flows_;
  std::vector<int> free_, changed_, dirty_;
  std::vector<std::vector<int>> onLink_;  // flows
  std::vector<std::uint8_t> isDirty_;
  std::vector<RankState> ranks_;
  std::vector<Queue> queues_;  // per pair
  std::vector<Waiting> waiting_;
  std::vector<int> freeWaiting_;
};

void checkFits(const Plan& plan, const CostMap& map) {
  if (plan.request.ranks != map.ranks())
    fail(taccInvalidArgument, "cost model: the plan is for {} ranks, the machine has {}", plan.request.ranks,
         map.ranks());
}

}  // namespace

double simulate(const Plan& plan, const CostMap& map, const CostCall& call) {
  checkFits(plan, map);
  const int chunks = chunksOf(call);
  Simulation simulation(Model(plan, map, call.bytes / chunks), chunks, call.window);
  simulation.run(never);
  return simulation.finished();
}

std::optional<double> simulateLong(const Plan& plan, const CostMap& map, const CostCall& call, double& budget) {
  checkFits(plan, map);
  const int chunks = chunksOf(call), window = std::max(1, call.window), played = std::min(chunks, 5 * window);
  Simulation simulation(Model(plan, map, call.bytes / chunks), played, window);
  const bool isWhole = simulation.run(budget);
  budget = std::max(0.0, budget - simulation.work());
  if (isWhole && chunks == played) return simulation.finished();
  // In the middle, where the first chunks have made room for others and the last have not begun to run out. Chunks may
  // come in bunches of a window.
  const int windows = simulation.completed() / window;
  const int first = (isWhole ? 2 : 1) * window - 1, last = (isWhole ? windows - 1 : windows) * window - 1;
  if (last <= first) return std::nullopt;
  const double pace = (simulation.completedAt(last) - simulation.completedAt(first)) / (last - first);
  if (!isWhole) return simulation.completedAt(last) + (chunks - 1 - last) * pace;
  const double seconds = simulation.finished();
  return seconds + (chunks - played) * pace;
}

}  // namespace tacc
