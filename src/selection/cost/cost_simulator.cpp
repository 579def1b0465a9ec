#include "selection/cost/cost_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "selection/cost/link_shares.hpp"
#include "selection/cost/play_model.hpp"

namespace tacc {

int chunksOf(const CostCall& call) noexcept {
  if (call.chunkBytes <= 0 || call.bytes <= call.chunkBytes) return 1;
  return static_cast<int>(std::min(std::ceil(call.bytes / call.chunkBytes), 1e9));
}

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

constexpr int nobody = -1;

class Simulation {
 public:
  Simulation(const PlayModel& model, int chunks, int window)
      : chunks_(chunks),
        window_(std::max(1, window)),
        model_(model),
        completed_(at(chunks), 0.0),
        shares_(model),
        ranks_(at(model_.ranks())),
        queues_(model_.pairs) {
    for (int c = 0; c < chunks; ++c) awaited_.insert(awaited_.end(), model_.awaited.begin(), model_.awaited.end());
  }

  /// False: given up, as it would be more work than that.
  bool run(double mostWork) {
    for (int r = 0; r < model_.ranks(); ++r) admit(r);
    settleRanks();
    settleLinks();
    while (!events_.empty()) {
      if (work_ > mostWork) return false;
      now_ = events_.top().time;
      // What happens together changes what ranks do, and the rates of the links, once.
      while (!events_.empty() && events_.top().time <= now_ * (1 + 1e-12)) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
        ++work_;
      }
      settleRanks();
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
    bool isBusy = false, isTouched = false;
  };

  struct Flow {
    int message = 0, chunk = 0;
    double remaining = 0, rate = 0, since = 0;
    int version = 0;
    bool isOpen = false;
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
      for (const int step : model_.awaiters.of(event.which))
        if (--awaitedBy(event.detail, step) == 0) touch(model_.rankOf[at(step)]);
    } else {
      ranks_[at(event.which)].isBusy = false;
      for (ChunkState& chunk : ranks_[at(event.which)].active)
        if (chunk.number == event.detail) finishStep(event.which, chunk);
      touch(event.which);
    }
  }

  /// It may have something to do.
  void touch(int r) {
    if (!std::exchange(ranks_[at(r)].isTouched, true)) touched_.push_back(r);
  }

  void settleRanks() {
    while (!touched_.empty()) {
      const int r = touched_.back();
      touched_.pop_back();
      ranks_[at(r)].isTouched = false;
      work(r);
    }
  }

  void admit(int r) {
    RankState& rank = ranks_[at(r)];
    while (rank.admitted < chunks_ && rank.admitted - rank.completed < window_)
      rank.active.push_back({rank.admitted++, 0, 0});
    touch(r);
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
      const double cpu = model_.seconds[at(model_.firstSteps[at(r)] + next->step)];
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
    for (const int message : model_.sends.of(model_.firstSteps[at(r)] + chunk.step++)) {
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
    Queue& queue = queues_[at(model_.messages[at(message)].pair)];
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
    flow = {message, chunk, model_.messages[at(message)].bytes, 0, now_, flow.version + 1, true};
    shares_.add(id, message);
  }

  void endFlow(int id) {
    const Flow flow = flows_[at(id)];
    const PlayModel::Message& m = model_.messages[at(flow.message)];
    flows_[at(id)].isOpen = false;
    free_.push_back(id);
    shares_.remove(id);
    startNext(m.pair);
    const double there = now_ + m.alpha;
    events_.push({there, Kind::arrival, flow.message, flow.chunk});
    finished_ = std::max(finished_, there);
    for (ChunkState& chunk : ranks_[at(m.sender)].active)
      if (chunk.number == flow.chunk) --chunk.openSends;
    retire(m.sender);
  }

  void settleLinks() {
    work_ += shares_.settle([this](int id, double rate) {
      Flow& flow = flows_[at(id)];
      if (flow.rate > 0) flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.since));
      flow.rate = rate;
      flow.since = now_;
      ++flow.version;
      events_.push({rate == never ? now_ : now_ + flow.remaining / rate, Kind::flowEnd, id, flow.version});
    });
  }

  int chunks_;
  int window_;
  const PlayModel& model_;
  double now_ = 0, finished_ = 0;
  double work_ = 0;                // events, and messages whose rate was found anew
  std::vector<double> completed_;  // per chunk
  std::priority_queue<Event> events_;
  std::vector<int> awaited_;  // per chunk and step: messages that have not come
  std::vector<Flow> flows_;
  std::vector<int> free_;
  LinkShares shares_;
  std::vector<RankState> ranks_;
  std::vector<int> touched_;   // ranks
  std::vector<Queue> queues_;  // per pair
  std::vector<Waiting> waiting_;
  std::vector<int> freeWaiting_;
};

void checkFits(const PlanRequest& request, const CostMap& map) {
  if (request.ranks != map.ranks())
    fail(taccInvalidArgument, "cost model: the plan is for {} ranks, the machine has {}", request.ranks, map.ranks());
}

/// A message is sent, arrives, is handled, and changes what others get: so much happens to each. Of a long call as many
/// chunks are played as are little work, 1 ms, and five windows at least.
constexpr double eventsOfMessage = 4, littleWork = 4e4;

std::optional<double> playLong(const PlayModel& model, const CostCall& call, double& budget) {
  const int chunks = chunksOf(call), window = std::max(1, call.window);
  const double little = littleWork / (eventsOfMessage * static_cast<double>(model.messages.size() + 1));
  int played = std::min(chunks, std::max(5 * window, static_cast<int>(little)));
  for (bool isAgain = false;; isAgain = true) {
    Simulation simulation(model, played, window);
    const bool isWhole = simulation.run(budget);
    budget = std::max(0.0, budget - simulation.work());
    if (isWhole && chunks == played) return simulation.finished();
    // In the middle, where the first chunks have made room for others and the last have not begun to run out. Chunks
    // may come in bunches of a window.
    const int windows = simulation.completed() / window;
    const int first = (isWhole ? 2 : 1) * window - 1, last = (isWhole ? windows - 1 : windows) * window - 1;
    if (last <= first) return std::nullopt;
    const double pace = (simulation.completedAt(last) - simulation.completedAt(first)) / (last - first);
    if (!isWhole) return simulation.completedAt(last) + (chunks - 1 - last) * pace;
    // Far away, many chunks are under way before the first one has passed, and the pace is found behind them only.
    const double underWay = pace > 0 ? simulation.completedAt(0) / pace : 0;
    const int steady = std::min(chunks, static_cast<int>(std::min(1e6, 3 * underWay)));
    if (isAgain || steady <= played || simulation.work() * steady / played > budget)
      return simulation.finished() + (chunks - played) * pace;
    played = steady;
  }
}

}  // namespace

double simulate(const Plan& plan, const CostMap& map, const CostCall& call) {
  checkFits(plan.request, map);
  const int chunks = chunksOf(call);
  const PlayModel model = playModelOf(plan, map, call.bytes / chunks);
  Simulation simulation(model, chunks, call.window);
  simulation.run(never);
  return simulation.finished();
}

std::optional<double> simulateLong(const Plan& plan, const CostMap& map, const CostCall& call, double& budget) {
  checkFits(plan.request, map);
  return playLong(playModelOf(plan, map, call.bytes / chunksOf(call)), call, budget);
}

std::optional<double> simulateLong(const Algorithm& algorithm, const PlanRequest& request, const RankClasses& classes,
                                   const CostMap& map, const CostCall& call, double& budget) {
  checkFits(request, map);
  const auto steps = static_cast<std::size_t>(std::min(budget, 1e9));
  const auto model = playModelOf(algorithm, request, map, classes, call.bytes / chunksOf(call), steps);
  if (!model) return std::nullopt;
  budget -= static_cast<double>(model->seconds.size());
  return playLong(*model, call, budget);
}

std::optional<double> simulateLong(const Exchanges& exchanges, const PlanRequest& request, const RankClasses& classes,
                                   const CostMap& map, const CostCall& call, double& budget) {
  checkFits(request, map);
  const auto steps = static_cast<std::size_t>(budget / 2);  // playing each takes more than listing it
  const auto model = playModelOf(exchanges, request, map, classes, call.bytes / chunksOf(call), steps);
  if (!model) return std::nullopt;
  budget -= static_cast<double>(model->seconds.size());
  return playLong(*model, call, budget);
}

}  // namespace tacc
