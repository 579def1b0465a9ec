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
/// So many of the best are tried again, of short calls: without a reason, and where something has changed.
constexpr std::size_t knownOptions = 4, knownOptionsOnChange = 6;
/// After its first trial an option that took so much longer than the best one is not tried again.
constexpr double hopeless = 1.5;
constexpr std::size_t finalists = 4;
constexpr std::size_t roundsOfBest = 2;  // after the one that chose them
/// Of short calls means of a few calls differ by more than a fifth: the same with one time of each, with a few, with
/// more.
constexpr double hopelessWithOne = 2, hopelessWithFew = 1.4, hopelessWithMore = 1.25;
constexpr std::size_t fewTimes = 4;
/// In so many windows the finalists of short calls are tried; in one if there are two.
constexpr int windowsOfFinalists = 2;
/// What an option may take at most of the settled one's time to replace it. Where nothing had led to the exploration it
/// is less than what 10 % of noise can make of two equal ones: 0.9 / 1.1.
constexpr double worthwhile = 0.95, worthwhileWithoutReason = 0.81;
constexpr std::uint64_t shortestRest = 16, longestRest = 1024;  // calls
constexpr std::uint64_t leastRoutine = 256, mostRoutine = 1 << 20;
constexpr double routineShare = 0.01;  // of the time, that explorations without a reason may cost
/// Of short calls the first ones may cost more, each half of the one before, and they come sooner: what the first
/// calls took was measured within a part of a second.
constexpr double firstRoutineShare = 0.08;
/// Trials until the first one; until each later one at least twice as many.
constexpr std::uint64_t firstRoutine = 32, mostDoublings = 5;
constexpr int mostAgreementsKnown = 8;  // that a mean is made of; older ones fade
/// What the settled one takes then of what another one took, of short calls, for the best ones to be tried again.
constexpr double overtaken = 1.1;
/// Of short calls the mean of several explorations; two options that are equally good take no turns.
constexpr double worthwhileByMean = 0.98;
/// Where links limit, trials do not tell which of two is the faster if one takes at most so many times as long.
constexpr double alike = 1 / worthwhileByMean;
constexpr int mostCountedOfMany = 16;  // calls of a time, while more than the finalists are tried
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

DynamicChoice::Pace DynamicChoice::paceOfLongCalls(int period, int skipped) {
  const int calls = std::clamp(period, leastPeriod, mostPeriod);
  return {calls, std::min(calls, static_cast<int>(mostTimes)), skipped};
}

DynamicChoice::Pace DynamicChoice::paceOfShortCalls(int period, int counted, int filling) {
  const int skipped = shortSkipped + filling;
  return {std::max(period, timesOfShortCalls * (skipped + counted)), timesOfShortCalls, skipped, counted, filling};
}

DynamicChoice::DynamicChoice(int option, double expected, Pace pace, const std::vector<int>& rivals)
    : current_(option),
      expected_(expected),
      price_(expected),
      pace_(pace),
      rivals_(rivals),
      before_(option),
      routine_(leastRoutine * callsOfTrial()) {
  recent_.reserve(rememberedOfShort + mostTimes);
  if (rivals.empty())
    rest();
  else
    explore(Reason::rivals, expected, rivals, false);
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
  const int more = phase == Phase::everyOption && isShort() ? shortSkipped : 0;
  // As long as many options are left, most of the calls are not those of the best one.
  // What fills pipelines comes in lumps of several calls.
  const bool areMany = (phase == Phase::everyOption || phase == Phase::betterOptions) && pace_.filling == 0;
  const int counted = areMany ? std::min(pace_.counted, mostCountedOfMany) : pace_.counted;
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < trials.size(); ++i) {
      // There and back, so that none always comes after the same one.
      const Trial& trial = trials[round % 2 == 0 ? i : trials.size() - 1 - i];
      turns.push_back({trial.option, pace_.skipped + more, counted - more});
    }
  schedule(phase, std::move(turns));
}

/// Calls of the settled option alone; the last ones before the agreement are timed.
void DynamicChoice::rest() {
  const int skipped = isShort() ? pace_.skipped : 0;
  std::vector<Turn> turns(static_cast<std::size_t>(pace_.times), {current_, skipped, pace_.counted});
  turns.front().skipped += callsOfRest() - pace_.times * (skipped + pace_.counted);
  schedule(Phase::settled, std::move(turns));
}

/// Agreements that lead to an exploration are none too many.
int DynamicChoice::callsOfRest() const noexcept {
  const std::uint64_t due = settledAt_ + routine_;
  if (!isShort() || due <= calls_ || due - calls_ >= static_cast<std::uint64_t>(pace_.period)) return pace_.period;
  return std::max(static_cast<int>(due - calls_), pace_.times * (pace_.skipped + pace_.counted));
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
  if (isShort()) keepSettled();
  window_.clear();
  const double measured = medianOf(recent_);
  const std::uint64_t settledFor = calls_ - settledAt_;
  const auto begin = [&](Reason reason, bool isReview = false) {
    explore(reason, measured, others(isReview, reason == Reason::routine ? 1.0 : measured / expected_, propose),
            isReview);
    return Event::exploring;
  };
  // Those of the first calls that a link lets pass at once are shorter than all that follow.
  const bool tells = isShort() ? recent_.size() == most : !isFresh || !isMeasured_ || measured > modelError * expected_;
  if (settledFor >= rest_ && tells) {
    if (!isMeasured_ && measured > modelError * expected_) return begin(Reason::model);
    if (isMeasured_ && departs(measured)) return begin(measured > expected_ ? Reason::slower : Reason::faster);
    if (!isShort() && settledFor >= routine_) return begin(Reason::routine);
  }
  if (isShort() && settledFor >= rest_ && !known_.empty()) {
    if (isOvertaken()) return begin(Reason::slower, true);
    if (settledFor >= routine_) return begin(Reason::routine, true);
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

std::vector<DynamicChoice::Known> DynamicChoice::bestKnown(std::size_t most) const {
  std::vector<Known> best = known_;
  std::ranges::stable_sort(best, {}, &Known::seconds);
  if (best.size() > most) best.resize(most);
  return best;
}

/// Of short calls what was measured before tells more than prices do.
std::vector<int> DynamicChoice::others(bool isReview, double ratio, const Propose& propose) const {
  if (!isShort() || known_.empty()) return propose(current_, ratio);
  std::vector<int> options;
  for (const Known& known : bestKnown(isReview ? knownOptions : knownOptionsOnChange)) options.push_back(known.option);
  return options;
}

void DynamicChoice::explore(Reason reason, double measured, const std::vector<int>& others, bool isReview) {
  reason_ = reason;
  isReview_ = isReview;
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
  if (isReview)
    tryOut(Phase::bestOptions, trials_, mostTimes / trials_.size());
  else
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

/// The old one is not left out for being the fifth of many that are alike, nor rivals' for its first time, which is
/// that of the first calls of all.
void DynamicChoice::keepOld(std::vector<Trial>& best, std::size_t room) const {
  const auto old = std::ranges::find(best, current_, &Trial::option);
  const bool isKept = reason_ != Reason::rivals || phase_ == Phase::everyOption;
  if (isKept && old != best.end() && old - best.begin() >= static_cast<std::ptrdiff_t>(room))
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
  if (phase_ == Phase::bestOptions) {
    const int windows = best.size() <= 2 || isReview_ ? 1 : windowsOfFinalists;
    if (windows_ + 1 >= windows) return settle();
  } else {
    keepOld(best, std::max(finalists, (best.size() + 1) / 2));
  }
  const bool keepsOld = phase_ == Phase::everyOption;
  std::erase_if(best,
                [&](const Trial& trial) { return trial.typical() > most && !(keepsOld && trial.option == current_); });
  if (best.size() == 1) return settle();
  tryOut(best.size() > finalists ? Phase::betterOptions : Phase::bestOptions, best, mostTimes / best.size());
  return Event::exploring;
}

double DynamicChoice::known(const Trial& trial) const {
  return isShort() ? std::ranges::find(known_, trial.option, &Known::option)->seconds : trial.typical();
}

/// Trials are short and come after other options' calls. Some options are as fast as that only there: a hundred calls
/// later the scheduler has found another order, and they take half as long again. So what the settled one takes in its
/// own calls replaces what its trials took.
void DynamicChoice::keepSettled() {
  const auto known = std::ranges::find(known_, current_, &Known::option);
  if (known == known_.end()) return;
  known->agreements = std::min(known->agreements + 1, mostAgreementsKnown);
  known->seconds = std::lerp(known->seconds, medianOf(window_), 1.0 / known->agreements);
}

/// The settled one takes clearly longer than another one did.
bool DynamicChoice::isOvertaken() const noexcept {
  const auto mine = std::ranges::find(known_, current_, &Known::option);
  if (mine == known_.end() || mine->agreements == 0) return false;
  return std::ranges::any_of(known_, [&](const Known& other) { return mine->seconds > overtaken * other.seconds; });
}

/// The last trial counts, and as much as before what an option took while it was settled.
void DynamicChoice::learn() {
  for (const Trial& trial : trials_) {
    auto known = std::ranges::find(known_, trial.option, &Known::option);
    if (known == known_.end()) known = known_.insert(known, {trial.option, 0, 0});
    const bool wasSettled = isReview_ && known->agreements > 0;
    if (wasSettled && trial.option == current_) continue;
    known->seconds = std::lerp(known->seconds, trial.typical(), wasSettled ? 0.5 : 1.0);
    if (!wasSettled) known->agreements = 0;
  }
}

/// The finalists are those with the most times.
const DynamicChoice::Trial& DynamicChoice::bestOfFinalists() const {
  std::vector<const Trial*> last;
  const std::size_t times = std::ranges::max(trials_, {}, &Trial::count).count;
  for (const Trial& trial : trials_)
    if (trial.count == times) last.push_back(&trial);
  const auto seconds = [this](const Trial* trial) { return known(*trial); };
  const Trial* best = *std::ranges::min_element(last, {}, seconds);
  const bool areOfLinks = isOfLinks(seconds(best));
  const double most = alike * seconds(best);
  for (const Trial* trial : last)
    if (areOfLinks && seconds(trial) <= most && priceRank(trial->option) < priceRank(best->option)) best = trial;
  const Trial& old = trials_.front();
  if (old.count != times || best == &old) return *best;
  const bool isCheaper = areOfLinks && priceRank(best->option) < priceRank(old.option);
  if (isCheaper && seconds(best) <= alike * seconds(&old)) return *best;
  // Two options that are equally good take no turns. Of rivals none was measured before.
  const bool isRoutine = reason_ == Reason::routine;
  const double needed = reason_ == Reason::rivals ? 1
                        : isReview_               ? worthwhileByMean
                        : isRoutine               ? worthwhileWithoutReason
                                                  : worthwhile;
  return known(*best) > needed * known(old) ? old : *best;
}

/// Of long calls the next exploration will cost what this one did. Of short ones it tries the best that are known.
void DynamicChoice::planRoutine(double best) {
  const std::uint64_t scale = callsOfTrial();
  double share = routineShare, excess = 0;
  std::uint64_t least = leastRoutine;
  if (isShort()) {
    const auto options = bestKnown(knownOptions);
    const std::size_t times = mostTimes / options.size();
    for (const Known& option : options) excess += std::max(0.0, option.seconds - best) * static_cast<double>(times);
    const std::uint64_t doublings = std::min(reviews_, mostDoublings);
    share = std::max(routineShare, firstRoutineShare / static_cast<double>(1U << doublings));
    least = firstRoutine << doublings;
  } else {
    for (const Trial& trial : trials_)
      for (std::size_t i = 0; i < trial.count; ++i) excess += std::max(0.0, trial.times[i] - best);
  }
  const double affordable = best > 0 ? excess / (share * best) : 0;
  routine_ = scale * std::clamp(static_cast<std::uint64_t>(std::min(affordable, 1e9)), least, mostRoutine);
}

DynamicChoice::Event DynamicChoice::settle() {
  learn();
  const Trial& best = bestOfFinalists();
  expected_ = known(best);
  reviews_ = isReview_ ? reviews_ + 1 : 0;
  planRoutine(expected_);
  // Where measurements depart again and again, trying does not help: ever longer rests, until it has been quiet.
  const bool wasQuiet = since_ - settledAt_ > 4 * rest_ || (isShort() && reason_ == Reason::routine);
  const std::uint64_t scale = callsOfTrial();
  rest_ = wasQuiet || rest_ == 0 ? shortestRest * scale : std::min(2 * rest_, longestRest * scale);
  const Event event = best.option == current_ ? Event::kept : Event::switched;
  if (event == Event::switched && isShort()) std::ranges::find(known_, best.option, &Known::option)->agreements = 0;
  current_ = best.option;
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
