#include "coordinator/interleave.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>

#include "coordinator/network_bound.hpp"
#include "coordinator/stolen_time.hpp"
#include "support/turns.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// All blocks of one size together should take about so long.
constexpr double secondsPerSize = 1.0;
/// A trial is long enough for the clock and the first calls not to matter.
constexpr double trialSeconds = 0.003;
constexpr int trialIterations = 3;
/// Before anything is timed, for every contestant alike: libraries connect, register and choose in their first calls.
/// Calls that take long make fewer, as many as fit in the time.
constexpr int settlingIterations = 13;
constexpr double settlingSeconds = 5;
/// Short calls make more, within this time: libraries that measure which algorithm is the fastest try many hundred
/// calls.
constexpr double choosingSeconds = 0.3;
constexpr int mostChoosingIterations = 2000;
constexpr int fewestIterations = 5;
constexpr int mostIterations = 2000;
/// If the fewest iterations take longer than this, fewer must do.
constexpr double longestBlockSeconds = 2.0;
constexpr int mostWarmup = 100;
/// A block that takes this many times what the trial promised is taken for a hang.
constexpr double hangFactor = 50;
constexpr double hangSeconds = 120;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// One contestant's part in the measurement of one call.
class Entrant {
 public:
  Entrant(Team& team, int variants) : team_(team), variants_(variants) {}

  /// Finds the fastest variant and how long a call takes.
  void rehearse() {
    for (int variant = 0; variant < variants_; ++variant) {
      double seconds = run({false, variant, 0, 1, false}).seconds;
      const int settling = fitting(settlingSeconds, seconds, 0, settlingIterations);
      if (settling > 0) seconds = run({false, variant, settling, std::min(settling, trialIterations), false}).seconds;
      const int choosing = fitting(choosingSeconds, seconds, 0, mostChoosingIterations);
      if (choosing > settling) seconds = run({false, variant, choosing, trialIterations, false}).seconds;
      if (seconds * trialIterations < trialSeconds)
        seconds = run({false, variant, 1, fitting(trialSeconds, seconds, 1, mostIterations), false}).seconds;
      if (variant == 0 || seconds < estimate_) {
        estimate_ = seconds;
        variant_ = variant;
      }
    }
  }

  /// `leastWarmup`: calls of a block that do not count, of every contestant alike, if the options do not say.
  void choose(const Options& options, int blocks, int leastWarmup) {
    average_ = options.average;
    aggregate_ = options.aggregate;
    perCall_ = options.perCall;
    reportsCpuTime_ = options.reportsCpuTime;
    if (options.iterations > 0) {
      iterations_ = std::max(1, options.iterations / options.repetitions);
    } else {
      const double each = estimate_ * aggregate_;
      iterations_ = fitting(secondsPerSize / blocks, each, fewestIterations, mostIterations);
      if (iterations_ * each > longestBlockSeconds) iterations_ = 2;
    }
    warmup_ = options.warmup >= 0 ? options.warmup : std::max(leastWarmup, std::clamp(iterations_ / 10, 1, mostWarmup));
  }

  void runBlock(bool inPlace, bool check) {
    const Timing timing = run({inPlace, variant_, warmup_, iterations_, check, aggregate_, perCall_});
    Blocks& blocks = inPlace ? inPlace_ : outOfPlace_;
    blocks.seconds.push_back(timing.seconds);
    blocks.cpuSeconds.push_back(timing.cpuSeconds);
    blocks.wrong += timing.wrong;
    blocks.calls.insert(blocks.calls.end(), timing.calls.begin(), timing.calls.end());
    algorithm_ = timing.algorithm;
  }

  Outcome outcome(bool inPlace = false) const {
    const Blocks& blocks = inPlace ? inPlace_ : outOfPlace_;
    Outcome outcome;
    outcome.cpuSeconds = median(blocks.cpuSeconds);
    outcome.microseconds = (reportsCpuTime_ ? outcome.cpuSeconds : median(blocks.seconds)) * 1e6;
    outcome.wrong = blocks.wrong;
    outcome.algorithm = algorithm_;
    if (perCall_) outcome.calls = CallTimes::of(blocks.calls);
    return outcome;
  }
  int iterations() const { return iterations_; }
  const std::string& name() const { return team_.name(); }

 private:
  /// How many calls of `each` seconds fit in `seconds`.
  static int fitting(double seconds, double each, int least, int most) {
    return static_cast<int>(
        std::clamp(seconds / std::max(each, 1e-9), static_cast<double>(least), static_cast<double>(most)));
  }

  /// Times as they are averaged, sum of wrong elements, calls of all ranks.
  Timing run(const Block& block) {
    const double expected = estimate_ * (block.warmup + block.iterations) * block.aggregate;
    const auto patience = std::chrono::seconds(static_cast<int>(hangSeconds + hangFactor * expected));
    const auto answers = team_.command(block.encode(), patience);
    Timing all;
    std::vector<double> seconds, cpuSeconds;
    for (const std::string& answer : answers) {
      const Timing timing = Timing::decode(answer);
      seconds.push_back(timing.seconds);
      cpuSeconds.push_back(timing.cpuSeconds);
      all.wrong += timing.wrong;
      all.algorithm = timing.algorithm;
      all.calls.insert(all.calls.end(), timing.calls.begin(), timing.calls.end());
    }
    all.seconds = averageOf(seconds);
    all.cpuSeconds = averageOf(cpuSeconds);
    return all;
  }

  /// Over ranks.
  double averageOf(const std::vector<double>& values) const {
    switch (average_) {
      case Average::rank0:
        return values.front();
      case Average::least:
        return *std::ranges::min_element(values);
      case Average::most:
        return *std::ranges::max_element(values);
      case Average::mean:
        break;
    }
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

  /// What was measured out of place, or in place.
  struct Blocks {
    std::vector<double> seconds, cpuSeconds;
    int64_t wrong = 0;
    std::vector<double> calls;
  };

  Team& team_;
  int variants_;
  int variant_ = 0;
  double estimate_ = 0;
  int iterations_ = 1;
  int warmup_ = 1;
  Average average_ = Average::mean;
  int aggregate_ = 1;
  bool perCall_ = false;
  bool reportsCpuTime_ = false;
  Blocks outOfPlace_, inPlace_;
  std::string algorithm_;
};

/// One block of a repetition.
struct Seat {
  Entrant* entrant;
  bool inPlace;
};

/// Prepares the team's ranks for the call; nothing if they do not offer it.
std::optional<Entrant> enter(Team& team, const Task& task) {
  const int variants = std::stoi(team.command(task.encode()).at(0));
  if (variants == 0) return std::nullopt;
  return Entrant(team, variants);
}

Row makeRow(const Options& options, const Task& task) {
  Row row;
  row.collective = task.collective;
  row.count = task.count;
  row.bytes = task.collective->shape(task.count, options.ranks).largest() * elementSize(task.type);
  row.type = task.type;
  row.op = task.op;
  row.root = task.root;
  row.ranks = options.ranks;
  return row;
}

}  // namespace

Row measure(const Contest& contest, const Options& options, const Task& task, const Progress& progress) {
  std::vector<Team*> teams = {contest.reference};
  teams.insert(teams.end(), contest.peers.begin(), contest.peers.end());
  if (contest.bound != nullptr) teams.push_back(contest.bound);
  std::vector<std::optional<Entrant>> entrants;
  for (Team* team : teams) {
    progress(fmt::format("{} prepares", team->name()));
    entrants.push_back(enter(*team, task));
  }
  if (!entrants[0])
    throw std::runtime_error(
        fmt::format("{} does not offer {}, and all others are compared with it", teams[0]->name(), task.encode()));
  // The peers are called out of place only.
  const bool inPlace = task.collective->hasInPlace && options.reference == "tacc";
  Row row = makeRow(options, task);
  std::vector<Seat> seats;
  for (auto& entrant : entrants)
    if (entrant) seats.push_back({&*entrant, false});
  if (inPlace) seats.push_back({&*entrants[0], true});
  const int leastWarmup = options.cluster ? tools::callsPerBurst(*options.cluster, row.bytes) : 0;
  for (const Seat& seat : seats) {
    if (seat.inPlace) continue;
    progress(fmt::format("{} rehearses", seat.entrant->name()));
    seat.entrant->rehearse();
    seat.entrant->choose(options, options.repetitions * static_cast<int>(seats.size()), leastWarmup);
  }
  const StolenTime stolen;
  const auto turns = tools::turnsOf(seats.size(), options.repetitions);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    const bool check = options.check && repetition + 1 == options.repetitions;
    for (const size_t turn : turns[static_cast<size_t>(repetition)]) {
      const Seat& seat = seats[turn];
      progress(fmt::format("{}, repetition {} of {}", seat.entrant->name(), repetition + 1, options.repetitions));
      seat.entrant->runBlock(seat.inPlace, check);
    }
  }

  row.stolen = stolen.share();
  row.outOfPlace = entrants[0]->outcome();
  row.iterations = entrants[0]->iterations() * options.repetitions;
  if (inPlace) row.inPlace = entrants[0]->outcome(true);
  for (size_t i = 0; i < contest.peers.size(); ++i) {
    row.peers.push_back({contest.peers[i]->name(), std::nullopt});
    if (entrants[i + 1]) row.peers.back().outcome = entrants[i + 1]->outcome();
  }
  if (contest.bound != nullptr && entrants.back()) row.bound = entrants.back()->outcome();
  if (contest.hosts != nullptr && options.bound) {
    const double seconds =
        networkBound(*options.collective, contest.hosts->shape(), contest.hosts->hostsOfRanks(), row.bytes, row.root);
    if (seconds > 0) {
      row.bound.emplace();
      row.bound->microseconds = seconds * 1e6;
    }
  }
  return row;
}

}  // namespace tacc::bench
