#include "selection/online/call_tuner.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tacc {
namespace {

/// Calls that links decide: the first of a trial does not count, as links let a burst pass at once.
constexpr int timesOfLinks = 8, skippedOfLinks = 1;
/// The longest with which a change is answered within 50 calls: half of the times until the median is off, then the
/// period, and an exploration.
constexpr int periodOfLinks = 50 - timesOfLinks / 2 - static_cast<int>(CallTuner::mostTimes) * (skippedOfLinks + 1);
/// Means of fewer short calls differ by a fifth; the first four connect, and run beside the calls before them.
constexpr int countedOfShort = 12, skippedOfShort = 4;
/// What the model promises and what few trials tell is right within that; measurements are within the lesser one.
constexpr double modelError = 1.5, measuredError = 1.25;
/// Options of short calls that are left when an exploration ends, and are tried again in reviews. A few, as all but one
/// are lost time.
constexpr std::size_t finalists = 4;
/// An option replaces the settled one if it takes at most that share of its time: of two that are alike none does.
constexpr double worthwhile = 0.95;
/// Agreements between explorations, which double up to that: then 2 % of all calls are trials.
constexpr int longestRest = 64;

}  // namespace

CallTuner::Pace CallTuner::paceOf(Kind kind) noexcept {
  if (kind == Kind::ofLinks) return {timesOfLinks, skippedOfLinks, 1};
  if (kind == Kind::overlapping) return {mostTimes, callsAhead, callsAhead};
  return {mostTimes, skippedOfShort, countedOfShort};
}

CallTuner::CallTuner(Kind kind, std::vector<int> options, double expected, int leastPeriod)
    : kind_(kind),
      options_(std::move(options)),
      pace_(paceOf(kind)),
      period_(std::max(leastPeriod, isShort() ? pace_.times * pace_.counted : periodOfLinks)),
      settled_{options_.front(), expected, false},
      cause_{Reason::rivals, options_.front(), expected, expected, 0} {
  window_.reserve(mostTimes);
  schedule();
}

void CallTuner::schedule() {
  if (tried_.empty()) return schedule_.assign(static_cast<std::size_t>(pace_.times), settled_.option);
  schedule_.clear();
  for (const Trial& trial : tried_) schedule_.push_back(trial.option);
  // Where there is time, there and back, so that none always comes after the same one.
  std::vector<int> next = schedule_;
  while (isShort() && schedule_.size() + next.size() <= mostTimes) {
    std::ranges::reverse(next);
    schedule_.insert(schedule_.end(), next.begin(), next.end());
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

CallTuner::Event CallTuner::agree() {
  const Event event = tried_.empty() ? judge() : compare();
  schedule();
  window_.clear();
  return event;
}

/// Of calls that overlap a rank waits for many in one, and takes the next ones out of its memory: only together they
/// tell how long each takes. The longest of several is left out, as other programs run too. Of other calls the lower
/// one in the middle counts: what is above it is other programs and late ranks.
double CallTuner::typicalOf(std::vector<double> times) const {
  if (kind_ != Kind::overlapping) {
    const auto middle = times.begin() + (std::ssize(times) - 1) / 2;
    std::ranges::nth_element(times, middle);
    return *middle;
  }
  if (times.size() > 2) times.erase(std::ranges::max_element(times));
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

CallTuner::Event CallTuner::judge() {
  ++agreements_;
  const double measured = typicalOf(window_);
  return isShort() ? judgeShort(measured) : judgeLinks(measured);
}

CallTuner::Event CallTuner::judgeShort(double measured) {
  settled_ = {settled_.option, settled_.isOwn ? std::midpoint(settled_.seconds, measured) : measured, true};
  if (agreements_ < rest_) return Event::none;
  if (explorations_ == 0) return explore(Reason::rivals, measured, measured, options_);
  std::ranges::stable_sort(others_, {}, &Known::seconds);
  std::vector<int> best;
  for (const Known& other : others_)
    if (best.size() < finalists && other.seconds <= modelError * settled_.seconds) best.push_back(other.option);
  if (best.empty()) return Event::none;
  if (worthwhile * settled_.seconds > others_.front().seconds)
    return explore(Reason::slower, settled_.seconds, others_.front().seconds, best);
  return agreements_ < untilRoutine_ ? Event::none : explore(Reason::routine, measured, settled_.seconds, best);
}

/// What is expected stays what the first calls took, so that what changes little by little is noticed too.
CallTuner::Event CallTuner::judgeLinks(double measured) {
  const double expected = settled_.seconds;
  const bool isSlower = measured > (settled_.isOwn ? measuredError : modelError) * expected;
  const bool isFaster = settled_.isOwn && measuredError * measured < expected;
  if (!isSlower && !isFaster) {
    if (!settled_.isOwn) settled_ = {settled_.option, measured, true};
    if (agreements_ < std::max(rest_, untilRoutine_)) return Event::none;
    return explore(Reason::routine, measured, expected, {options_.front()});
  }
  if (agreements_ < rest_) return Event::none;
  // What is known is of the network as it was.
  others_.clear();
  settled_ = {settled_.option, measured, false};
  return explore(isSlower ? Reason::slower : Reason::faster, measured, expected, options_);
}

CallTuner::Event CallTuner::explore(Reason reason, double measured, double expected, const std::vector<int>& options) {
  for (const int option : options)
    if (tried_.size() < mostTimes && option != settled_.option &&
        std::ranges::find(tried_, option, &Trial::option) == tried_.end())
      tried_.push_back({option});
  if (tried_.empty()) return Event::none;
  cause_ = {reason, settled_.option, measured, expected, calls_};
  ++explorations_;
  return Event::begun;
}

/// Some options are fast only in the first calls after another one's, which is what trials are: of the settled one only
/// its own calls in a row count, and of one that was settled before these count as much as a trial.
void CallTuner::learn(const Trial& trial) {
  const double seconds = typicalOf(trial.times);
  const auto known = std::ranges::find(others_, trial.option, &Known::option);
  if (known == others_.end())
    others_.push_back({trial.option, seconds, false});
  else
    known->seconds = known->isOwn ? std::midpoint(known->seconds, seconds) : seconds;
}

/// Half of the options of short calls are left after each window, so most calls try those that are close.
CallTuner::Event CallTuner::compare() {
  for (std::size_t i = 0; i < window_.size(); ++i)
    std::ranges::find(tried_, schedule_[i], &Trial::option)->times.push_back(window_[i]);
  const auto typical = [this](const Trial& trial) { return typicalOf(trial.times); };
  std::ranges::stable_sort(tried_, {}, typical);
  if (!isShort() || tried_.size() <= finalists) return settle();
  const double most = modelError * typical(tried_.front());
  const std::size_t room = std::max(finalists, (tried_.size() + 1) / 2);
  while (tried_.size() > room || typical(tried_.back()) > most) {
    learn(tried_.back());
    tried_.pop_back();
  }
  return tried_.size() == 1 ? settle() : Event::goesOn;
}

CallTuner::Event CallTuner::settle() {
  for (const Trial& trial : tried_) learn(trial);
  const auto untried = std::partition(others_.begin(), others_.end(), [this](const Known& known) {
    return std::ranges::find(tried_, known.option, &Trial::option) != tried_.end();
  });
  const auto best = std::ranges::min_element(others_.begin(), untried, {}, &Known::seconds);
  const bool isRoutine = cause_.reason == Reason::routine;
  // Where nothing led to the trial of a single call, noise makes as much of two that are alike.
  const bool isBetter = best->seconds <= (isRoutine && !isShort() ? 1 / measuredError : worthwhile) * settled_.seconds;
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
