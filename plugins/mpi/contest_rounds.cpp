#include "contest_rounds.hpp"

#include <algorithm>
#include <cstddef>

namespace tacc::mpi {
namespace {

constexpr int singleRounds = 4;
constexpr int leastRounds = 2;           // in one of which the machine may have stopped
constexpr int sizingRounds = 1;          // of many calls, but as many as single ones said: it only finds how many
constexpr int longRounds = 7;            // that count
constexpr double roundSeconds = 100e-6;  // of each of the two, as far as a few calls are not longer
constexpr int leastCalls = 3, mostCalls = 2000;
constexpr double longCallSeconds = 1e-3;  // of such one is enough for a round
// Where calls are long, a few are enough to see that one side is `clearly` times as fast. Short ones are measured in
// any case: by itself a call is long because the ranks do not come to it at once, and 8 times as long as among others.
constexpr double clearly = 8, longSeconds = 200e-6;
// What takes longer than this in all, as with more ranks than processors under an MPI that spins, ends as soon as it is
// clear.
constexpr double patienceSeconds = 20e-3;
constexpr std::size_t fewRounds = 3;
// Means differ by this much where one side waits again and again for something that most rounds do not show.
constexpr double muchSlower = 4;

int callsOf(double seconds, double longer) {
  const double least = seconds > longCallSeconds ? 1 : leastCalls;
  return static_cast<int>(std::clamp(longer * roundSeconds / std::max(seconds, 1e-9), least, double{mostCalls}));
}

/// A call may be 50 ns slower than without this library, which itself takes 20 to 40 of them, whoever serves; and two
/// runs differ by some.
constexpr double noticed = 25e-9;
bool isLess(double one, double other) { return other - one > noticed && one < 0.97 * other; }

double medianOf(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

double meanOf(const std::vector<double>& times) {
  double all = 0;
  for (const double time : times) all += time;
  return all / static_cast<double>(times.size());
}

/// What a busy machine does to one round is no habit of the library.
double meanButWorst(const std::vector<double>& times) {
  const auto count = static_cast<double>(times.size());
  return count < 2 ? times[0] : (meanOf(times) * count - std::ranges::max(times)) / (count - 1);
}

}  // namespace

bool Rounds::isClearAtOnce() const noexcept { return least_.mpi > longSeconds && least_.mpi > clearly * least_.tacc; }

bool Rounds::isClear() const noexcept {
  const auto isSlow = [](double one, double other) { return one > clearly * other; };
  return std::ranges::all_of(long_, [&](const RoundTimes& times) { return isSlow(times.mpi, times.tacc); }) ||
         std::ranges::all_of(long_, [&](const RoundTimes& times) { return isSlow(times.tacc, times.mpi); });
}

bool Rounds::isOver() const noexcept {
  if (done_ == 0) return false;
  const bool isLate = seconds_ > patienceSeconds;
  if (long_.empty())
    return isClearAtOnce() && (done_ == singleRounds || (done_ >= leastRounds && done_ < singleRounds && isLate));
  return long_.size() == longRounds || (long_.size() >= fewRounds && isLate && isClear());
}

RoundCalls Rounds::next() const noexcept {
  if (isOver()) return {};
  if (done_ < singleRounds) return {1, 1};
  return {callsOf(least_.tacc, before_.longer), callsOf(least_.mpi, before_.longer)};
}

void Rounds::add(const RoundTimes& times) {
  const RoundCalls calls = next();
  seconds_ += calls.tacc * times.tacc + calls.mpi * times.mpi;
  if (done_ >= singleRounds + sizingRounds) long_.push_back(times);
  least_ = done_ == 0 ? times : RoundTimes{std::min(least_.tacc, times.tacc), std::min(least_.mpi, times.mpi)};
  ++done_;
}

void Rounds::conclude(Outcome& outcome) const {
  outcome.tacc = least_.tacc;
  outcome.mpi = least_.mpi;
  outcome.isMpiFaster = outcome.isMpiSlowInMean = false;
  if (long_.empty()) return;
  std::vector<double> tacc, mpi;
  for (const RoundTimes& times : long_) {
    tacc.push_back(times.tacc);
    mpi.push_back(times.mpi);
  }
  outcome.tacc = medianOf(tacc);
  outcome.mpi = medianOf(mpi);
  // In the median and at best: on a busy machine either may mislead.
  outcome.isMpiFaster = isLess(outcome.mpi, outcome.tacc) && isLess(std::ranges::min(mpi), std::ranges::min(tacc));
  // With more ranks than processors an MPI that spins is quick until a rank is as far ahead of another as it may be.
  // Then it waits for processors: what most rounds say is not what many calls take. A single slow round tells nothing:
  // it may be the machine. Where it was the MPI, longer rounds of the next contests find it.
  const double ofMpi = std::max(meanButWorst(mpi), before_.slowMpi), ofTacc = meanButWorst(tacc);
  if (ofMpi > muchSlower * ofTacc) {
    outcome.isMpiSlowInMean = true;
    outcome.mpi = std::max(outcome.mpi, ofMpi);
    outcome.isMpiFaster = false;
  } else if (ofTacc > muchSlower * ofMpi && isLess(ofMpi, ofTacc)) {
    outcome.tacc = std::max(outcome.tacc, ofTacc);
    outcome.isMpiFaster = true;
  }
}

}  // namespace tacc::mpi
