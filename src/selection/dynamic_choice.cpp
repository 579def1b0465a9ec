#include "selection/dynamic_choice.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace tacc {
namespace {

/// Agreed times that are looked at: half of them and one more must be off. Of short calls they are from four
/// agreements, as where ranks share cores, all are longer for a while.
constexpr std::size_t remembered = 8, rememberedOfShort = 16;
/// The model is of the network alone, and within 15 % of it; inside hosts calls take time too.
constexpr double modelError = 1.5;
constexpr double departure = 1.25;  // from what was measured before
/// Short calls are by so much slower for a while when other programs run.
constexpr double departureOfShortCalls = 1.6;
constexpr std::size_t knownOptions = 4;  // the best of them are tried again, of short calls
/// After its first trial an option that took so much longer than the best one is not tried again.
constexpr double hopeless = 1.5;
constexpr std::size_t finalists = 4;
constexpr std::size_t roundsOfBest = 2;  // after the one that chose them
/// Of short calls means of a few calls differ by more than a fifth: the same with one time of each, with a few, with
/// more.
constexpr double hopelessWithOne = 2, hopelessWithFew = 1.4, hopelessWithMore = 1.25;
constexpr std::size_t fewTimes = 4;
constexpr std::size_t tellingTimes = 10;  // whose quarters say which of two options is slower
constexpr std::size_t lastFinalists = 2;
/// For so long the last four are tried, and then the last two: what slows short calls down often lasts as long as a
/// window does.
constexpr int windowsOfFinalists = 4;
/// What an option may take at most of the settled one's time to replace it. Where nothing had led to the exploration it
/// is less than what 10 % of noise can make of two equal ones: 0.9 / 1.1.
constexpr double worthwhile = 0.95, worthwhileWithoutReason = 0.81;
constexpr std::uint64_t shortestRest = 16, longestRest = 1024;  // calls
constexpr std::uint64_t leastRoutine = 256, mostRoutine = 1 << 20;
constexpr double routineShare = 0.01;  // of the time, that explorations without a reason may cost
constexpr int mostCountedOfMany = 16;  // calls of a time, while more than the finalists are tried
/// Eight processes that take turns on two cores are in step after a call or two.
constexpr int shortSkipped = 2;

/// The lower of the two in the middle, of an even number: what is above it is other programs and late ranks.
double medianOf(std::span<const double> times) {
  std::array<double, rememberedOfShort> sorted{};
  const auto end = std::ranges::copy(times, sorted.begin()).out;
  const auto middle = sorted.begin() + (end - sorted.begin() - 1) / 2;
  std::nth_element(sorted.begin(), middle, end);
  return *middle;
}

double hopelessOfShort(std::size_t times) {
  return times == 1 ? hopelessWithOne : times <= fewTimes ? hopelessWithFew : hopelessWithMore;
}

}  // namespace

/// Of three it is the median. Of more it is steadier than that where times jump between two levels.
double DynamicChoice::Trial::typical() const noexcept {
  std::array<double, most> sorted = times;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(sorted.begin(), end);
  const auto left = static_cast<std::ptrdiff_t>((count + 1) / 4);
  return std::accumulate(sorted.begin() + left, end - left, 0.0) / static_cast<double>(end - sorted.begin() - 2 * left);
}

bool DynamicChoice::Trial::isBehind(const Trial& other) const noexcept {
  if (count < tellingTimes || other.count < tellingTimes) return false;
  std::array<double, most> mine = times, others = other.times;
  const auto quarter = mine.begin() + static_cast<std::ptrdiff_t>(count / 4);
  const auto threeQuarters = others.begin() + static_cast<std::ptrdiff_t>(3 * other.count / 4);
  std::nth_element(mine.begin(), quarter, mine.begin() + static_cast<std::ptrdiff_t>(count));
  std::nth_element(others.begin(), threeQuarters, others.begin() + static_cast<std::ptrdiff_t>(other.count));
  return *quarter > *threeQuarters;
}

DynamicChoice::Pace DynamicChoice::paceOfLongCalls(int period, int skipped) {
  const int calls = std::clamp(period, leastPeriod, mostPeriod);
  return {calls, calls, skipped};
}

DynamicChoice::Pace DynamicChoice::paceOfShortCalls(int period, int counted) {
  return {std::max(period, timesOfShortCalls * (shortSkipped + counted)), timesOfShortCalls, shortSkipped, counted};
}

DynamicChoice::DynamicChoice(int option, double expected, Pace pace, const std::vector<int>& rivals)
    : current_(option), expected_(expected), pace_(pace), before_(option), routine_(leastRoutine * callsOfTrial()) {
  recent_.reserve(rememberedOfShort + mostTimes);
  if (rivals.empty())
    rest();
  else
    explore(Reason::rivals, expected, rivals);
}

void DynamicChoice::schedule(Phase phase, std::vector<Turn> turns) {
  windows_ = phase == phase_ ? windows_ + 1 : 0;
  phase_ = phase;
  schedule_ = std::move(turns);
  window_.clear();
  window_.reserve(schedule_.size());
}

void DynamicChoice::tryOut(Phase phase, std::span<const Trial> trials, std::size_t rounds) {
  std::vector<Turn> turns;
  // The first calls of an option go over new connections.
  const int more = phase == Phase::everyOption && isShort() ? pace_.skipped : 0;
  // As long as many options are left, most of the calls are not those of the best one.
  const bool areMany = phase == Phase::everyOption || phase == Phase::betterOptions;
  const int counted = areMany ? std::min(pace_.counted, mostCountedOfMany) : pace_.counted;
  for (std::size_t round = 0; round < rounds; ++round)
    for (const Trial& trial : trials) turns.push_back({trial.option, pace_.skipped + more, counted - more});
  schedule(phase, std::move(turns));
}

/// Calls of the settled option alone; the last ones before the agreement are timed.
void DynamicChoice::rest() {
  const int skipped = isShort() ? pace_.skipped : 0;
  std::vector<Turn> turns(static_cast<std::size_t>(pace_.times), {current_, skipped, pace_.counted});
  turns.front().skipped += pace_.period - pace_.times * (skipped + pace_.counted);
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
    case Phase::bestOptions:
    case Phase::lastOptions:
      break;
  }
  keepTrials();
  return isShort() ? compareShort() : compare();
}

DynamicChoice::Event DynamicChoice::judge(const Propose& propose) {
  const std::size_t most = isShort() ? rememberedOfShort : remembered;
  const bool isFresh = recent_.size() < most;
  recent_.insert(recent_.end(), window_.begin(), window_.end());
  if (recent_.size() > most) recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(most));
  window_.clear();
  const double measured = medianOf(recent_);
  const std::uint64_t settledFor = calls_ - settledAt_;
  const auto begin = [&](Reason reason) {
    explore(reason, measured, others(reason == Reason::routine ? 1.0 : measured / expected_, propose));
    return Event::exploring;
  };
  // Those of the first calls that a link lets pass at once are shorter than all that follow.
  const bool tells = isShort() ? recent_.size() == most : !isFresh || !isMeasured_ || measured > modelError * expected_;
  if (settledFor >= rest_ && tells) {
    if (!isMeasured_ && measured > modelError * expected_) return begin(Reason::model);
    if (isMeasured_ && departs(measured)) return begin(measured > expected_ ? Reason::slower : Reason::faster);
    if (settledFor >= routine_) return begin(Reason::routine);
  }
  if (!isShort() && pace_.skipped > 0 && calls_ == static_cast<std::uint64_t>(pace_.period)) {
    recent_.clear();  // some of them passed as a burst
    return Event::none;
  }
  // A few calls were too few to know what to expect, and those between others' calls are a little shorter.
  if (!isMeasured_ || (isFresh && (!departs(measured) || (measured > expected_ && measured < modelError * expected_))))
    expected_ = measured;
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
  tryOut(Phase::everyOption, trials_, 1);
}

void DynamicChoice::keepTrials() {
  for (std::size_t i = 0; i < window_.size(); ++i) {
    Trial& trial = *std::ranges::find(trials_, schedule_[i].option, &Trial::option);
    if (trial.count < Trial::most) trial.times[trial.count++] = window_[i];
  }
}

std::vector<DynamicChoice::Trial> DynamicChoice::ranking() const {
  const auto isTried = [&](const Trial& trial) {
    return std::ranges::find(schedule_, trial.option, &Turn::option) != schedule_.end();
  };
  std::vector<Trial> best;
  std::ranges::copy_if(trials_, std::back_inserter(best), isTried);
  std::ranges::stable_sort(best, {}, &Trial::typical);
  return best;
}

/// The old one is not left out for being the fifth of many that are alike. Of rivals none was measured before.
void DynamicChoice::keepOld(std::vector<Trial>& best, std::size_t room) const {
  const auto old = std::ranges::find(best, current_, &Trial::option);
  if (reason_ != Reason::rivals && old != best.end() && old - best.begin() >= static_cast<std::ptrdiff_t>(room))
    std::swap(*old, best[room - 1]);
  if (best.size() > room) best.resize(room);
}

DynamicChoice::Event DynamicChoice::compare() {
  if (phase_ == Phase::bestOptions) return settle();
  std::vector<Trial> best = ranking();
  const double most = hopeless * best.front().typical();
  keepOld(best, finalists);
  std::erase_if(best, [&](const Trial& trial) { return trial.typical() > most; });
  tryOut(Phase::bestOptions, best, roundsOfBest);
  return Event::exploring;
}

/// Half of the options are left each time, so most calls try those that are close; each time the window is full.
DynamicChoice::Event DynamicChoice::compareShort() {
  std::vector<Trial> best = ranking();
  const double most = hopelessOfShort(best.front().count) * best.front().typical();
  Phase next = Phase::lastOptions;
  std::size_t room = lastFinalists;
  if (phase_ == Phase::everyOption || phase_ == Phase::betterOptions) {
    room = std::max(finalists, (best.size() + 1) / 2);
    next = room > finalists ? Phase::betterOptions : Phase::bestOptions;
  } else if (windows_ + 1 < windowsOfFinalists) {
    room = best.size();
    next = phase_;
  }
  keepOld(best, room);
  const Trial first = best.front();
  std::erase_if(best, [&](const Trial& trial) { return trial.typical() > most || trial.isBehind(first); });
  if (next == Phase::bestOptions && best.size() <= lastFinalists) next = Phase::lastOptions;
  const bool isOver = phase_ == Phase::lastOptions && windows_ + 1 == windowsOfFinalists;
  if (isOver || best.size() == 1) return settle();
  tryOut(next, best, mostTimes / best.size());
  return Event::exploring;
}

DynamicChoice::Event DynamicChoice::settle() {
  const std::size_t most = std::ranges::max(trials_, {}, &Trial::count).count;
  const auto isFinalist = [&](const Trial& trial) { return trial.count == most; };
  const Trial* best = nullptr;
  for (const Trial& trial : trials_)
    if (isFinalist(trial) && (best == nullptr || trial.typical() < best->typical())) best = &trial;
  const Trial& old = trials_.front();
  if (isFinalist(old) && best != &old) {
    // Two options that are equally good take no turns. Of rivals none was measured before.
    const double needed = reason_ == Reason::rivals    ? 1
                          : reason_ == Reason::routine ? worthwhileWithoutReason
                                                       : worthwhile;
    if (best->typical() > needed * old.typical()) best = &old;
  }
  for (const Trial& trial : trials_) {
    const auto known = std::ranges::find(known_, trial.option, &Known::option);
    if (known == known_.end())
      known_.push_back({trial.option, trial.typical()});
    else
      known->seconds = trial.typical();
  }
  double excess = 0;
  for (const Trial& trial : trials_)
    for (std::size_t i = 0; i < trial.count; ++i) excess += std::max(0.0, trial.times[i] - best->typical());
  expected_ = best->typical();
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
