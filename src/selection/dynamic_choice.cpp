#include "selection/dynamic_choice.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace tacc {
namespace {

constexpr std::size_t remembered = 8;  // agreed times that are looked at: half of them and one more must be off
/// The model is of the network alone, and within 15 % of it; inside hosts calls take time too.
constexpr double modelError = 1.5;
constexpr double departure = 1.25;  // from what was measured before
/// Short calls are by so much slower for a while when other programs run.
constexpr double departureOfShortCalls = 1.6;
constexpr std::size_t knownOptions = 4;  // the best of them are tried again, of short calls
/// After its first trial an option that took so much longer than the best one is not tried again.
constexpr double hopeless = 1.5;
/// Of short calls means of a few calls differ by more than a fifth.
constexpr double hopelessShortCall = 2;
constexpr std::size_t finalists = 4;
constexpr int roundsOfHalving = 2;
/// What an option may take at most of the settled one's time to replace it. Where nothing had led to the exploration it
/// is less than what 10 % of noise can make of two equal ones: 0.9 / 1.1.
constexpr double worthwhile = 0.95, worthwhileWithoutReason = 0.81;
constexpr std::uint64_t shortestRest = 16, longestRest = 1024;  // calls
constexpr std::uint64_t leastRoutine = 256, mostRoutine = 1 << 20;
constexpr double routineShare = 0.01;  // of the time, that explorations without a reason may cost
/// Eight processes that take turns on two cores are in step after a call or two.
constexpr int shortSkipped = 2, shortRounds = 3;

/// The lower of the two in the middle, of an even number: what is above it is other programs and late ranks.
double medianOf(std::span<const double> times) {
  std::array<double, remembered> sorted{};
  const auto end = std::ranges::copy(times, sorted.begin()).out;
  const auto middle = sorted.begin() + (end - sorted.begin() - 1) / 2;
  std::nth_element(sorted.begin(), middle, end);
  return *middle;
}

}  // namespace

double DynamicChoice::Trial::median() const noexcept { return medianOf({times.data(), count}); }

DynamicChoice::Pace DynamicChoice::paceOfLongCalls(int period) {
  const int calls = std::clamp(period, leastPeriod, mostPeriod);
  return {calls, calls};
}

DynamicChoice::Pace DynamicChoice::paceOfShortCalls(int period, int counted) {
  return {std::max(period, timesOfShortCalls * (shortSkipped + counted)), timesOfShortCalls, shortSkipped, counted,
          shortRounds};
}

DynamicChoice::DynamicChoice(int option, double expected, Pace pace, const std::vector<int>& rivals)
    : current_(option), expected_(expected), pace_(pace), before_(option), routine_(leastRoutine * callsOfTrial()) {
  recent_.reserve(remembered + mostTimes);
  if (rivals.empty())
    rest();
  else
    explore(Reason::rivals, expected, rivals);
}

void DynamicChoice::schedule(Phase phase, std::vector<Turn> turns) {
  phase_ = phase;
  schedule_ = std::move(turns);
  window_.clear();
  window_.reserve(schedule_.size());
}

void DynamicChoice::tryOut(Phase phase, const std::vector<int>& options) {
  std::vector<Turn> turns;
  // The first calls of an option go over new connections.
  const int more = phase == Phase::everyOption ? pace_.skipped : 0;
  for (const int option : options) turns.push_back({option, pace_.skipped + more, pace_.counted - more});
  schedule(phase, std::move(turns));
}

/// Calls of the settled option alone; the last ones before the agreement are timed.
void DynamicChoice::rest() {
  std::vector<Turn> turns(static_cast<std::size_t>(pace_.times), {current_, pace_.skipped, pace_.counted});
  turns.front().skipped += pace_.period - pace_.times * (pace_.skipped + pace_.counted);
  schedule(Phase::settled, std::move(turns));
}

bool DynamicChoice::record(double seconds) {
  ++calls_;
  const Turn& turn = schedule_[window_.size()];
  if (made_++ >= turn.skipped) sum_ += seconds;
  if (made_ < turn.skipped + turn.counted) return false;
  window_.push_back(sum_ / turn.counted);
  made_ = 0;
  sum_ = 0;
  return window_.size() == schedule_.size();
}

DynamicChoice::Event DynamicChoice::agree(const Propose& propose) {
  switch (phase_) {
    case Phase::settled:
      return judge(propose);
    case Phase::everyOption:
    case Phase::betterOptions:
      return compare();
    case Phase::bestOptions:
      break;
  }
  return settle();
}

DynamicChoice::Event DynamicChoice::judge(const Propose& propose) {
  const bool isFresh = recent_.size() < remembered;
  recent_.insert(recent_.end(), window_.begin(), window_.end());
  if (recent_.size() > remembered)
    recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(remembered));
  window_.clear();
  const double measured = medianOf(recent_);
  const std::uint64_t settledFor = calls_ - settledAt_;
  const auto begin = [&](Reason reason) {
    explore(reason, measured, others(reason == Reason::routine ? 1.0 : measured / expected_, propose));
    return Event::exploring;
  };
  const bool tells = !isShort() || recent_.size() == remembered;
  if (settledFor >= rest_ && tells) {
    if (!isMeasured_ && measured > modelError * expected_) return begin(Reason::model);
    if (isMeasured_ && departs(measured)) return begin(measured > expected_ ? Reason::slower : Reason::faster);
    if (settledFor >= routine_) return begin(Reason::routine);
  }
  // A few calls were too few to know what to expect.
  if (!isMeasured_ || (isFresh && !departs(measured))) expected_ = measured;
  isMeasured_ = true;
  return Event::none;
}

bool DynamicChoice::departs(double measured) const noexcept {
  if (isShort()) return measured > departureOfShortCalls * expected_;
  return measured > departure * expected_ || measured * departure < expected_;
}

/// Of short calls what was measured before tells more than prices do.
std::vector<int> DynamicChoice::others(double ratio, const Propose& propose) const {
  if (!isShort() || known_.empty()) return propose(current_, ratio);
  std::vector<Known> best = known_;
  std::ranges::stable_sort(best, {}, &Known::seconds);
  if (best.size() > knownOptions) best.resize(knownOptions);
  std::vector<int> options;
  for (const Known& known : best) options.push_back(known.option);
  return options;
}

void DynamicChoice::explore(Reason reason, double measured, const std::vector<int>& others) {
  reason_ = reason;
  measured_ = measured;
  expectedBefore_ = expected_;
  before_ = current_;
  since_ = calls_;
  ++explorations_;
  trials_.assign(1, {current_, 0, {}});
  for (const int option : others) {
    if (trials_.size() == (reason == Reason::rivals ? mostTimes : mostOptions)) break;
    if (std::ranges::find(trials_, option, &Trial::option) == trials_.end()) trials_.push_back({option, 0, {}});
  }
  std::vector<int> options;
  for (const Trial& trial : trials_) options.push_back(trial.option);
  tryOut(Phase::everyOption, options);
}

void DynamicChoice::keepTrials() {
  for (std::size_t i = 0; i < window_.size(); ++i) {
    Trial& trial = *std::ranges::find(trials_, schedule_[i].option, &Trial::option);
    trial.times[trial.count++] = window_[i];
  }
}

/// Of short calls half of the options are left each time until few enough are: most calls try those that are close.
DynamicChoice::Event DynamicChoice::compare() {
  keepTrials();
  const auto isTried = [&](const Trial& trial) {
    return std::ranges::find(schedule_, trial.option, &Turn::option) != schedule_.end();
  };
  std::vector<Trial> best;
  std::ranges::copy_if(trials_, std::back_inserter(best), isTried);
  std::ranges::stable_sort(best, {}, &Trial::median);
  const std::size_t room = isShort() ? std::max(finalists, (best.size() + 1) / 2) : finalists;
  // The old one is not left out for being the fifth of many that are alike. Of rivals none was measured before.
  const auto old = std::ranges::find(best, current_, &Trial::option);
  const double least = best.front().median();
  if (reason_ != Reason::rivals && old - best.begin() >= static_cast<std::ptrdiff_t>(room))
    std::swap(*old, best[room - 1]);
  std::vector<int> options;
  for (const Trial& trial : best)
    if (options.size() < room && trial.median() <= (isShort() ? hopelessShortCall : hopeless) * least)
      options.push_back(trial.option);
  const bool isLast = options.size() <= finalists;
  // In turn, so that what disturbs one of them disturbs the others too.
  const std::size_t once = options.size();
  const int rounds = isLast ? pace_.rounds : roundsOfHalving;
  for (std::size_t i = 0; i < once * static_cast<std::size_t>(rounds - 1); ++i) options.push_back(options[i]);
  tryOut(isLast ? Phase::bestOptions : Phase::betterOptions, options);
  return Event::exploring;
}

DynamicChoice::Event DynamicChoice::settle() {
  keepTrials();
  const std::size_t most = std::ranges::max(trials_, {}, &Trial::count).count;
  const auto isFinalist = [&](const Trial& trial) { return trial.count == most; };
  const Trial* best = nullptr;
  for (const Trial& trial : trials_)
    if (isFinalist(trial) && (best == nullptr || trial.median() < best->median())) best = &trial;
  const Trial& old = trials_.front();
  if (isFinalist(old) && best != &old) {
    // Two options that are equally good take no turns. Of rivals none was measured before.
    const double needed = reason_ == Reason::rivals    ? 1
                          : reason_ == Reason::routine ? worthwhileWithoutReason
                                                       : worthwhile;
    if (best->median() > needed * old.median()) best = &old;
  }
  for (const Trial& trial : trials_) {
    const auto known = std::ranges::find(known_, trial.option, &Known::option);
    if (known == known_.end())
      known_.push_back({trial.option, trial.median()});
    else
      known->seconds = trial.median();
  }
  double excess = 0;
  for (const Trial& trial : trials_)
    for (std::size_t i = 0; i < trial.count; ++i) excess += std::max(0.0, trial.times[i] - best->median());
  expected_ = best->median();
  const auto scale = callsOfTrial();
  const double affordable = expected_ > 0 ? excess / (routineShare * expected_) : 0;
  routine_ = scale * std::clamp(static_cast<std::uint64_t>(std::min(affordable, 1e9)), leastRoutine, mostRoutine);
  // Where measurements depart again and again, trying does not help: ever longer rests, until it has been quiet.
  const bool wasQuiet = since_ - settledAt_ > 4 * rest_;
  rest_ = wasQuiet || rest_ == 0 ? shortestRest * scale : std::min(2 * rest_, longestRest * scale);
  const Event event = best->option == current_ ? Event::kept : Event::switched;
  current_ = best->option;
  isMeasured_ = true;
  settledAt_ = calls_;
  recent_.clear();
  rest();
  return event;
}

std::string_view nameOf(DynamicChoice::Reason reason) {
  switch (reason) {
    case DynamicChoice::Reason::model:
      return "slower than the model says";
    case DynamicChoice::Reason::slower:
      return "slower than before";
    case DynamicChoice::Reason::faster:
      return "faster than before";
    case DynamicChoice::Reason::rivals:
      return "one of several with nearly the same price";
    case DynamicChoice::Reason::routine:
      break;
  }
  return "tried as a routine";
}

}  // namespace tacc
