#include "contests.hpp"

#include <algorithm>

namespace tacc::mpi {
namespace {

/// To look costs a short allreduce. That is little beside so many calls, unless they are short and go one way: ranks
/// that are apart have to meet, which takes tens of microseconds with more ranks than cores. So of quick calls there
/// are more between looks, as many as last so long, up to a bound: calls may become slower, which a look is to find.
constexpr std::uint32_t callsBetween = 512, mostBetween = 8 * callsBetween;
constexpr double secondsBetween = 20e-3;
/// A contest after so many times the seconds that it takes costs a hundredth. Where nothing changes the next ones come
/// later and later.
constexpr double leastWait = 100, mostWait = 6400;
constexpr double leastCost = 1e-3;  // also of one in which nothing was measured
/// Longer rounds find what happens after more calls, as when a root may not be further ahead.
constexpr double timesLonger = 4, longest = 16;

}  // namespace

/// With own counts the first looks come sooner: what was usual in few calls is no more than a guess.
void Contests::serve(Function function, std::size_t bytes, Turn turn, std::uint32_t calls) noexcept {
  constexpr std::uint64_t timesLater = 8;
  if (hasOwnCounts(function)) {
    OwnCounts& own = ownCounts_[static_cast<std::size_t>(function)];
    if (own.until < callsBetween) own.until = std::min<std::uint64_t>(own.until * timesLater, callsBetween);
    own.calls = own.bytes = 0;
    own.turn = turn;
  } else if (isMeasured(bytes)) {
    calls_[kindOf(function, bytes)] = {calls, calls, turn, true};
  }
}

std::size_t Contests::usualBytes(Function function) const noexcept {
  const OwnCounts& own = ownCounts_[static_cast<std::size_t>(function)];
  return static_cast<std::size_t>(own.bytes / std::max<std::uint64_t>(own.calls, 1));
}

const Contests::Memory* Contests::memory(Function function, std::size_t bytes) const noexcept {
  const auto found = isMeasured(bytes) ? memories_.find(kindOf(function, bytes)) : memories_.end();
  return found == memories_.end() ? nullptr : &found->second;
}

double Contests::wait(Function function, std::size_t bytes, double now) const noexcept {
  const Memory* const last = memory(function, bytes);
  return last == nullptr ? 0 : std::max(last->next - now, 0.0);
}

double Contests::sinceLook(Function function, std::size_t bytes, double now) const noexcept {
  const Memory* const last = memory(function, bytes);
  return last == nullptr ? 0 : now - last->looked;
}

Contests::Turn Contests::keep(Function function, std::size_t bytes, double now, double sinceLook) noexcept {
  const auto found = isMeasured(bytes) ? memories_.find(kindOf(function, bytes)) : memories_.end();
  if (found == memories_.end()) {
    serve(function, bytes, Turn::tacc, callsBetween);
    return Turn::tacc;
  }
  std::uint32_t calls = callsBetween;
  if (!hasOwnCounts(function)) {  // else a look also finds what all move by now
    const double quick = calls_[kindOf(function, bytes)].until * secondsBetween / std::max(sinceLook, 1e-9);
    calls = static_cast<std::uint32_t>(std::clamp<double>(quick, callsBetween, mostBetween));
  }
  serve(function, bytes, found->second.turn, calls);
  found->second.looked = now;
  return found->second.turn;
}

EarlierRounds Contests::before(Function function, std::size_t bytes) const noexcept {
  const Memory* const last = memory(function, bytes);
  return last == nullptr ? EarlierRounds{} : last->before;
}

double Contests::decide(const Outcome& outcome, double now) {
  const Turn turn = outcome.isMpiFaster ? Turn::mpi : Turn::tacc;
  serve(outcome.function, outcome.bytes, turn, callsBetween);
  if (!isMeasured(outcome.bytes)) return now;
  const auto [found, isFirst] = memories_.try_emplace(kindOf(outcome.function, outcome.bytes));
  Memory& last = found->second;
  const double cost = std::max(outcome.cost, leastCost);
  const double longer = std::min(last.before.longer * timesLonger, longest);
  const double nextCost = cost * longer / last.before.longer;
  last.waited =
      std::clamp(!isFirst && last.turn == turn ? 2 * last.waited : 0, leastWait * nextCost, mostWait * nextCost);
  last.next = now + last.waited;
  last.looked = now;
  last.turn = turn;
  last.before.longer = longer;
  last.before.slowMpi = outcome.isMpiSlowInMean ? outcome.mpi / 2 : 0;  // it may be quick by now: half is forgotten
  return now + leastWait * cost;
}

}  // namespace tacc::mpi
