#include "point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "support/turns.hpp"

namespace tacc::tune {
namespace {

constexpr double hopeless = 4;  // times as long as the best: by the model, or in a trial
/// A call that costs less is tried whatever the model says.
constexpr double cheapSeconds = 20e-3;
/// Rounds that the share of a point is meant for: where ranks share cores a block of calls takes up to twice as long
/// as the next one, so many short blocks tell more than a few long ones.
constexpr int fewestRounds = 3, usualRounds = 20, mostRounds = 200;
/// After `rounds` rounds, candidates that take more than `behind` times as long as the best in them are given up. The
/// time they would take goes to those that are close.
struct Parting {
  std::size_t rounds;
  double behind;
};
constexpr std::array partings = {Parting{2, 2}, Parting{4, 1.5}, Parting{8, 1.3}, Parting{16, 1.2}};
constexpr Parting partingOfSlowCalls = {2, 1.5};
constexpr double leastBlockSeconds = 1e-3;  // long enough for the clock and for what ranks start apart
constexpr int mostCalls = 500;
/// Links let a burst of some KiB pass at once. The calls that no clock sees, before those of a block, use it up. Calls
/// of few bytes take so long for what they send that the burst is never used up, and of many it is a small part.
constexpr std::size_t burstBytes = 256 << 10, burstlessBytes = 1 << 20, bytesOfAWarmCall = 256;
constexpr std::size_t leastWarm = 2;
/// Free calls before any is timed: explorations take 30 calls, of short ones up to 900, of broadcasts 1700, and come
/// again.
constexpr double learningSeconds = 1.5;
constexpr int leastLearning = 48, mostLearning = 15000;

double fastest(const std::vector<Entrant>& entrants) {
  double best = std::numeric_limits<double>::infinity();
  for (const Entrant& entrant : entrants)
    if (entrant.seconds() > 0) best = std::min(best, entrant.seconds());
  return best;
}

/// Calls of a block that do not count. Of the largest ones the burst is a small part.
int warmOf(const Point& point) {
  if (point.total >= burstlessBytes) return 0;
  return static_cast<int>(std::max(leastWarm, std::min(point.total / bytesOfAWarmCall, burstBytes / point.total)));
}

Reading timeOf(Gauge& gauge, const Point& point, Entrant& entrant, int calls, int warm = 0) {
  const std::string route = entrant.isFree ? "" : entrant.route.name;
  const Reading reading = gauge.time(point.collective, point.count, route, calls, warm);
  if (entrant.isFree) entrant.route.name = gauge.lastAlgorithm();
  return reading;
}

/// One call to connect and to write plans, one to be timed; a single one where it takes long.
void tryOut(Gauge& gauge, const Point& point, Entrant& entrant) {
  entrant.trial = timeOf(gauge, point, entrant, 1).seconds;
  if (entrant.isFree) {
    entrant.trial = timeOf(gauge, point, entrant, leastLearning / 2).seconds;
    const double calls = std::clamp(learningSeconds / entrant.trial, 1.0 * leastLearning, 1.0 * mostLearning);
    timeOf(gauge, point, entrant, static_cast<int>(calls));
  }
  if (entrant.trial < cheapSeconds) entrant.trial = std::min(entrant.trial, timeOf(gauge, point, entrant, 2).seconds);
}

void tryAll(Gauge& gauge, const Point& point, std::vector<Entrant>& entrants, const Told& told) {
  std::optional<double> bestPrice;
  for (const Entrant& entrant : entrants)
    if (entrant.route.seconds) bestPrice = std::min(bestPrice.value_or(*entrant.route.seconds), *entrant.route.seconds);
  for (Entrant& entrant : entrants) {
    const bool isChosen = &entrant == &entrants.front();
    const double price = entrant.route.seconds.value_or(0);
    if (!isChosen && bestPrice && price > hopeless * *bestPrice && price > cheapSeconds) {
      entrant.dropped = fmt::format("the model says {:.1f} times as long as the best", price / *bestPrice);
      continue;
    }
    told(entrant.route.name);
    tryOut(gauge, point, entrant);
  }
  const double best = fastest(entrants);
  for (Entrant& entrant : entrants)
    if (entrant.dropped.empty() && entrant.trial > hopeless * best && &entrant != &entrants.front())
      entrant.dropped = fmt::format("its trial took {:.1f} times as long as the best", entrant.trial / best);
}

int callsOf(double blockSeconds, double seconds) {
  return static_cast<int>(std::clamp(blockSeconds / std::max(seconds, 1e-7), 1.0, double{mostCalls}));
}

void giveUp(std::vector<Entrant>& entrants, const std::vector<Entrant*>& field) {
  const double best = fastest(entrants);
  const bool isSlow = best > cheapSeconds;
  for (Entrant* entrant : field) {
    const auto isDue = [&](const Parting& parting) { return entrant->blocks.size() == parting.rounds; };
    const auto* parting = isSlow ? &partingOfSlowCalls : std::ranges::find_if(partings, isDue);
    const bool isChosen = entrant == &entrants.front();
    if (isChosen || (!isSlow && parting == partings.end()) || entrant->blocks.size() < parting->rounds) continue;
    if (entrant->seconds() > parting->behind * best)
      entrant->dropped = fmt::format("{:.1f} times as long as the best", entrant->seconds() / best);
  }
}

std::vector<Rounds> roundsOf(const std::vector<Entrant>& entrants) {
  std::vector<Rounds> rounds;
  for (const Entrant& entrant : entrants) rounds.push_back(entrant.blocks);
  return rounds;
}

}  // namespace

double Entrant::seconds() const { return blocks.empty() ? trial : typical(blocks); }

std::vector<Entrant> measure(Gauge& gauge, const Point& point, double share, bool isFree, const Told& told) {
  std::vector<Entrant> entrants;
  if (isFree) entrants.push_back({{}, 0, {}, "", true});
  for (CallRoute& route : gauge.comm().routes(point.collective, point.bytes()))
    entrants.push_back({std::move(route), 0, {}, "", false});
  tryAll(gauge, point, entrants, told);
  const int warm = warmOf(point);
  std::optional<double> begin;
  double elapsed = 0;
  std::vector<std::vector<std::size_t>> turns;
  for (int round = 0; round < mostRounds; ++round) {
    std::vector<Entrant*> field;
    for (Entrant& entrant : entrants)
      if (entrant.dropped.empty()) field.push_back(&entrant);
    if (field.size() == 1 && round >= fewestRounds) break;
    // The time of those that are given up goes to longer blocks of the others: some routes are fast in the first
    // hundred calls after another one.
    const double block = std::max(leastBlockSeconds, share / (usualRounds * static_cast<double>(field.size())));
    // As many of each: a link that lets the first bytes pass faster favours those that make few.
    const int calls = std::max(callsOf(block, fastest(entrants)) - warm, std::max(warm, 1));
    // None always comes after the same one.
    if (turns.empty() || turns.front().size() != field.size()) turns = tools::turnsOf(field.size(), mostRounds);
    for (const std::size_t turn : turns[static_cast<std::size_t>(round)]) {
      Entrant& entrant = *field[turn];
      told(entrant.route.name);
      const Reading reading = timeOf(gauge, point, entrant, calls, warm);
      entrant.blocks.push_back(reading.seconds);
      if (!begin) begin = reading.elapsed;
      elapsed = reading.elapsed - *begin;
    }
    if (round + 1 >= fewestRounds && elapsed > share) break;
    giveUp(entrants, field);
  }
  return entrants;
}

TunedSize resultOf(const Point& point, const std::vector<Entrant>& entrants) {
  const std::vector<Rounds> rounds = roundsOf(entrants);
  const bool isFree = entrants.front().isFree;
  // Free calls are measured beside the routes that they choose from, and are none of them.
  const std::size_t routes = isFree ? 1 : 0;
  const auto usual = isFree ? std::nullopt : std::optional<std::size_t>(0);
  const Entrant& best = entrants[routes + preferred(std::span(rounds).subspan(routes), usual)];
  const Entrant* next = nullptr;
  for (const Entrant& entrant : entrants)
    if (!entrant.isFree && &entrant != &best && entrant.seconds() > 0 &&
        (next == nullptr || entrant.seconds() < next->seconds()))
      next = &entrant;
  TunedSize result;
  result.bytes = point.bytes();
  result.algorithm = best.route.name;
  result.seconds = best.seconds();
  if (next != nullptr) {
    result.next = next->route.name;
    result.nextSeconds = next->seconds();
  }
  result.untuned = entrants.front().route.name;
  result.untunedSeconds = entrants.front().seconds();
  return result;
}

Excess regretOf(const std::vector<Entrant>& entrants) { return excessOf(roundsOf(entrants), 0); }

}  // namespace tacc::tune
