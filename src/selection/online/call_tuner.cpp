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
/// Short calls. Of a host's ranks one may be 16 calls ahead of another: so many begin while those before them are under
/// way, and fewer may all be waited for in one of them. Means of fewer differ by a fifth, too.
constexpr int callsAhead = 16;

/// What the model promises and what few trials tell is right within that; measurements are within the lesser one.
constexpr double modelError = 1.5, measuredError = 1.25;
/// Options that are tried again of short calls. A few, as all but one are lost time.
constexpr std::size_t finalists = 4;
/// An option replaces the settled one if it takes at most that share of its time: of two that are alike none does.
constexpr double worthwhile = 0.95;
/// Agreements between explorations, which double up to that: then 2 % of all calls are trials.
constexpr int longestRest = 64;

}  // namespace

CallTuner::Pace CallTuner::paceOf(Kind kind) noexcept {
  if (kind == Kind::ofLinks) return {timesOfLinks, skippedOfLinks, 1};
  return {mostTimes, callsAhead, callsAhead};
}

CallTuner::CallTuner(Kind kind, std::vector<int> options, double expected, int leastPeriod)
    : kind_(kind),
      options_(std::move(options)),
      pace_(paceOf(kind)),
      period_(std::max(leastPeriod, kind == Kind::ofLinks ? periodOfLinks : pace_.times * pace_.counted)),
      settled_{options_.front(), expected, false},
      cause_{Reason::rivals, options_.front(), expected, expected, 0} {
  window_.reserve(mostTimes);
  schedule();
}

void CallTuner::schedule() {
  if (tried_.empty()) return schedule_.assign(static_cast<std::size_t>(pace_.times), settled_.option);
  schedule_ = tried_;
  // Where there is time, there and back, so that none always comes after the same one.
  while (kind_ == Kind::shortCalls && schedule_.size() + tried_.size() <= mostTimes) {
    std::ranges::reverse(tried_);
    schedule_.insert(schedule_.end(), tried_.begin(), tried_.end());
  }
}

int CallTuner::skipped() const noexcept {
  if (!tried_.empty()) return pace_.skipped;
  if (kind_ == Kind::shortCalls && explorations_ == 0) return 0;  // what the model chose is not believed for long
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
  const Event event = tried_.empty() ? judge() : settle();
  schedule();
  window_.clear();
  return event;
}

/// Of short calls a rank may wait for many in one, and take the next ones out of its memory: only together they tell
/// how long each takes. The longest of several is left out, as other programs run too. Of calls that links decide the
/// lower one in the middle counts: what is above it is other programs and late ranks.
double CallTuner::typicalOf(std::vector<double> times) const {
  if (kind_ == Kind::ofLinks) {
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
  return kind_ == Kind::ofLinks ? judgeLinks(measured) : judgeShort(measured);
}

CallTuner::Event CallTuner::judgeShort(double measured) {
  settled_ = {settled_.option, measured, true};
  if (agreements_ < rest_) return Event::none;
  if (explorations_ == 0) return explore(Reason::rivals, measured, measured, options_);
  std::ranges::stable_sort(others_, {}, &Known::seconds);
  std::vector<int> best;
  for (const Known& other : others_)
    if (best.size() < finalists && other.seconds <= modelError * measured) best.push_back(other.option);
  if (best.empty() || others_.front().seconds >= worthwhile * measured) return Event::none;
  return explore(Reason::slower, measured, others_.front().seconds, best);
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
  settled_ = {settled_.option, measured, true};
  return explore(isSlower ? Reason::slower : Reason::faster, measured, expected, options_);
}

CallTuner::Event CallTuner::explore(Reason reason, double measured, double expected, const std::vector<int>& options) {
  for (const int option : options)
    if (tried_.size() < mostTimes && option != settled_.option && std::ranges::find(tried_, option) == tried_.end())
      tried_.push_back(option);
  if (tried_.empty()) return Event::none;
  cause_ = {reason, settled_.option, measured, expected, calls_};
  ++explorations_;
  return Event::begun;
}

void CallTuner::learn(int option, double seconds) {
  const auto known = std::ranges::find(others_, option, &Known::option);
  if (known == others_.end())
    others_.push_back({option, seconds, false});
  else
    *known = {option, seconds, false};
}

/// Some options are fast only in the first calls after another one's, which is what trials are: of the settled one only
/// its own calls in a row count.
CallTuner::Event CallTuner::settle() {
  for (const int option : tried_) {
    std::vector<double> times;
    for (std::size_t i = 0; i < window_.size(); ++i)
      if (schedule_[i] == option) times.push_back(window_[i]);
    learn(option, typicalOf(times));
  }
  const auto untried = std::partition(others_.begin(), others_.end(), [this](const Known& known) {
    return std::ranges::find(tried_, known.option) != tried_.end();
  });
  const auto best = std::ranges::min_element(others_.begin(), untried, {}, &Known::seconds);
  const bool isRoutine = cause_.reason == Reason::routine;
  // Where nothing led to the trial of a single call, noise makes as much of two that are alike.
  const bool isBetter = best->seconds <= (isRoutine ? 1 / measuredError : worthwhile) * settled_.seconds;
  if (isBetter) std::swap(settled_, *best);
  tried_.clear();
  // Where trying does not help, as times change without end, rests become longer until it has been quiet.
  const bool isQuiet = isRoutine || agreements_ > 4 * rest_;
  rest_ = isQuiet ? std::max(rest_ / 2, 1) : std::min(2 * rest_, longestRest);
  untilRoutine_ = isRoutine ? std::min(2 * untilRoutine_, longestRest) : 2;
  agreements_ = 0;
  return isBetter ? Event::switched : Event::kept;
}

}  // namespace tacc
