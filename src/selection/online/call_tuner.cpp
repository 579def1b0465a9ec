#include "selection/online/call_tuner.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tacc {
namespace {

/// Calls that links decide: the first of a trial does not count, as links let a burst pass at once.
constexpr int timesOfLinks = 8, skippedOfLinks = 1;
/// The longest with which a change is answered within 50 calls: half of the times until the median is off, then the
/// period, and an exploration of two windows.
constexpr int periodOfLinks = 50 - timesOfLinks / 2 - 2 * timesOfLinks * (skippedOfLinks + 1);
/// Means of fewer short calls differ by a fifth; the first four connect, and run beside the calls before them.
constexpr int countedOfShort = 12, skippedOfShort = 4;
/// Calls that overlap: of a host's ranks one may be 16 calls ahead of another. So many begin while those before them
/// are under way, and fewer may all be waited for in one of them.
constexpr int countedOfOverlapping = 16, skippedOfOverlapping = 16;

/// What the model promises and what few trials tell is right within that; measurements are within the lesser one.
constexpr double modelError = 1.5, measuredError = 1.25;
/// Options that are left when an exploration ends, and are tried again in reviews. A few, as all but one are lost time.
constexpr std::size_t finalists = 4;
/// An option replaces the settled one if it takes at most that share of its time: of two that are alike none does.
constexpr double worthwhile = 0.95;
/// Agreements between explorations, which double up to that: then 2 % of all calls are trials.
constexpr int longestRest = 64;

/// The lower of the two in the middle, of an even number: what is above it is other programs and late ranks.
double medianOf(std::vector<double> times) {
  const auto middle = times.begin() + (std::ssize(times) - 1) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

CallTuner::CallTuner(int option, double expected, int leastPeriod, std::vector<int> rivals, bool overlap)
    : model_(option),
      rivals_(std::move(rivals)),
      overlap_(overlap),
      pace_(!isShort() ? Pace{timesOfLinks, skippedOfLinks, 1}
            : overlap  ? Pace{mostTimes, skippedOfOverlapping, countedOfOverlapping}
                       : Pace{mostTimes, skippedOfShort, countedOfShort}),
      period_(std::max(leastPeriod, isShort() ? pace_.times * pace_.counted : periodOfLinks)),
      settled_{option, expected, false},
      cause_{Reason::rivals, option, expected, expected, 0} {
  window_.reserve(mostTimes);
  schedule();
}

void CallTuner::schedule() {
  if (tried_.empty()) return schedule_.assign(static_cast<std::size_t>(pace_.times), settled_.option);
  schedule_.clear();
  for (std::size_t round = 0; round < std::max<std::size_t>(1, static_cast<std::size_t>(pace_.times) / tried_.size());
       ++round) {
    for (const Trial& trial : tried_) schedule_.push_back(trial.option);
    // There and back, so that none always comes after the same one.
    if (round % 2 == 1) std::reverse(schedule_.end() - std::ssize(tried_), schedule_.end());
  }
}

int CallTuner::skipped() const noexcept {
  if (!tried_.empty()) return pace_.skipped;
  if (isShort() && explorations_ == 0) return 0;  // what the model chose is not believed for long
  return window_.empty() ? period_ - pace_.times * pace_.counted : 0;
}

bool CallTuner::record(double seconds) {
  ++calls_;
  if (made_++ >= skipped()) sum_ += seconds;
  if (made_ < skipped() + pace_.counted) return false;
  window_.push_back(sum_ / pace_.counted);
  made_ = 0;
  sum_ = 0;
  return window_.size() == schedule_.size();
}

CallTuner::Event CallTuner::agree(const Propose& propose) {
  const Event event = tried_.empty() ? judge(propose) : compare();
  schedule();
  window_.clear();
  return event;
}

/// Of calls that overlap a rank waits for many in one, and takes the next ones out of its memory: only together they
/// tell how long each takes. The longest of several is left out, as other programs run too.
double CallTuner::typicalOf(std::vector<double> times) const {
  if (!overlap_) return medianOf(std::move(times));
  if (times.size() > 2) times.erase(std::ranges::max_element(times));
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

CallTuner::Event CallTuner::judge(const Propose& propose) {
  ++agreements_;
  const double measured = typicalOf(window_);
  const Event event = isShort() ? judgeShort(measured) : judgeLinks(measured, propose);
  if (event != Event::none || agreements_ < std::max(rest_, untilRoutine_) || others_.empty()) return event;
  return review(Reason::routine, measured, settled_.seconds);
}

CallTuner::Event CallTuner::judgeShort(double measured) {
  settled_.seconds = settled_.isOwn ? std::midpoint(settled_.seconds, measured) : measured;
  settled_.isOwn = true;
  if (agreements_ < rest_) return Event::none;
  if (explorations_ == 0) return explore(Reason::rivals, measured, measured, rivals_);
  double least = settled_.seconds;
  for (const Known& other : others_) least = std::min(least, other.seconds);
  return worthwhile * settled_.seconds > least ? review(Reason::slower, settled_.seconds, least) : Event::none;
}

/// What is expected stays what the first calls took, so that what changes little by little is noticed too.
CallTuner::Event CallTuner::judgeLinks(double measured, const Propose& propose) {
  const double expected = settled_.seconds;
  const bool isSlower = measured > (settled_.isOwn ? measuredError : modelError) * expected;
  const bool isFaster = settled_.isOwn && measuredError * measured < expected;
  if (!isSlower && !isFaster) {
    if (!settled_.isOwn) settled_ = {settled_.option, measured, true};
    return Event::none;
  }
  if (agreements_ < rest_) return Event::none;
  // What is known is of the network as it was.
  others_.clear();
  settled_ = {settled_.option, measured, false};
  std::vector<int> options = propose(settled_.option, measured / expected);
  options.insert(options.begin(), {settled_.option, model_});
  return explore(isSlower ? Reason::slower : Reason::faster, measured, expected, options);
}

CallTuner::Event CallTuner::review(Reason reason, double measured, double expected) {
  std::ranges::stable_sort(others_, {}, &Known::seconds);
  std::vector<int> options;
  for (const Known& other : others_)
    if (options.size() < finalists && other.seconds <= modelError * settled_.seconds) options.push_back(other.option);
  if (!isShort()) options.insert(options.begin(), {settled_.option, model_});
  return explore(reason, measured, expected, options);
}

CallTuner::Event CallTuner::explore(Reason reason, double measured, double expected, const std::vector<int>& options) {
  for (const int option : options) {
    const bool isKnown = isShort() && option == settled_.option;
    if (std::ssize(tried_) < pace_.times && !isKnown &&
        std::ranges::find(tried_, option, &Trial::option) == tried_.end())
      tried_.push_back({option});
  }
  if (tried_.empty()) return Event::none;
  cause_ = {reason, settled_.option, measured, expected, calls_};
  ++explorations_;
  return Event::begun;
}

/// Half of the options are left after each window, so most calls try those that are close.
CallTuner::Event CallTuner::compare() {
  for (std::size_t i = 0; i < window_.size(); ++i)
    std::ranges::find(tried_, schedule_[i], &Trial::option)->times.push_back(window_[i]);
  const auto typical = [this](const Trial& trial) { return typicalOf(trial.times); };
  std::ranges::stable_sort(tried_, {}, typical);
  const double most = modelError * typical(tried_.front());
  const bool isLast = tried_.size() <= finalists;
  const std::size_t room = std::max(finalists, (tried_.size() + 1) / 2);
  while (tried_.size() > room || typical(tried_.back()) > most) {
    learn(tried_.back());
    tried_.pop_back();
  }
  return isLast || tried_.size() == 1 ? settle() : Event::goesOn;
}

/// Some options are fast only in the first calls after another one's, which is what trials are: of the settled one only
/// its own calls in a row count, and of one that was settled before these count as much as a trial.
void CallTuner::learn(const Trial& trial) {
  const double seconds = typicalOf(trial.times);
  if (trial.option == settled_.option) {
    if (!settled_.isOwn) settled_.seconds = seconds;
    return;
  }
  const auto known = std::ranges::find(others_, trial.option, &Known::option);
  if (known == others_.end())
    others_.push_back({trial.option, seconds, false});
  else
    known->seconds = known->isOwn ? std::midpoint(known->seconds, seconds) : seconds;
}

CallTuner::Event CallTuner::settle() {
  std::ranges::for_each(tried_, [this](const Trial& trial) { learn(trial); });
  const auto isTried = [this](const Known& known) {
    return std::ranges::find(tried_, known.option, &Trial::option) != tried_.end();
  };
  const auto rest = std::partition(others_.begin(), others_.end(), isTried);
  const auto best = std::ranges::min_element(others_.begin(), rest, {}, &Known::seconds);
  const bool isRoutine = cause_.reason == Reason::routine;
  // Where nothing led to the trial of single calls, noise makes as much of two that are alike.
  const double most = (isRoutine && !isShort() ? 1 / measuredError : worthwhile) * settled_.seconds;
  const bool isBetter = best != rest && best->seconds <= most;
  if (isBetter) {
    std::swap(settled_, *best);
    settled_.isOwn = false;
  }
  tried_.clear();
  // Where trying does not help, as times change without end, rests become longer until it has been quiet.
  const bool isQuiet = isRoutine || agreements_ > 4 * rest_;
  rest_ = isQuiet ? std::max(rest_ / 2, 1) : std::min(2 * rest_, longestRest);
  const bool isReview = isRoutine || (isShort() && cause_.reason == Reason::slower);
  untilRoutine_ = isReview ? std::min(2 * untilRoutine_, longestRest) : 2;
  agreements_ = 0;
  return isBetter ? Event::switched : Event::kept;
}

}  // namespace tacc
