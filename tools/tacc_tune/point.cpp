#include "point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace tacc::tune {
namespace {

constexpr double hopeless = 4;  // times as long as the best: by the model, or in a trial
constexpr double behind = 1.5;  // times as long as the best in the rounds so far
/// A call that costs less is tried whatever the model says.
constexpr double cheapSeconds = 20e-3;
constexpr int fewestRounds = 2, usualRounds = 5, mostRounds = 41;
/// Rounds after which those that are behind are given up.
constexpr std::size_t tellingRounds = 2;
constexpr double leastBlockSeconds = 1e-3;  // long enough for the clock and for what ranks start apart
constexpr int mostCalls = 500;
/// Free calls before any is timed: explorations take 15 calls, of short ones up to 600.
constexpr double learningSeconds = 0.3;
constexpr int leastLearning = 32, mostLearning = 700;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double fastest(const std::vector<Entrant>& entrants) {
  double best = std::numeric_limits<double>::infinity();
  for (const Entrant& entrant : entrants)
    if (entrant.seconds() > 0) best = std::min(best, entrant.seconds());
  return best;
}

Reading timeOf(Gauge& gauge, const Point& point, Entrant& entrant, int calls) {
  const Reading reading = gauge.time(point.collective, point.count, entrant.isFree ? "" : entrant.way.name, calls);
  if (entrant.isFree) entrant.way.name = gauge.lastAlgorithm();
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
    if (entrant.way.seconds) bestPrice = std::min(bestPrice.value_or(*entrant.way.seconds), *entrant.way.seconds);
  for (Entrant& entrant : entrants) {
    const bool isChosen = &entrant == &entrants.front();
    const double price = entrant.way.seconds.value_or(0);
    if (!isChosen && bestPrice && price > hopeless * *bestPrice && price > cheapSeconds) {
      entrant.dropped = fmt::format("the model says {:.1f} times as long as the best", price / *bestPrice);
      continue;
    }
    told(entrant.way.name);
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

}  // namespace

double Entrant::seconds() const { return blocks.empty() ? trial : median(blocks); }

std::vector<Entrant> measure(Gauge& gauge, const Point& point, double share, bool isFree, const Told& told) {
  std::vector<Entrant> entrants;
  if (isFree) entrants.push_back({{}, 0, {}, "", true});
  for (CallWay& way : gauge.comm().ways(point.collective, point.bytes()))
    entrants.push_back({std::move(way), 0, {}, "", false});
  tryAll(gauge, point, entrants, told);
  std::optional<double> begin;
  double elapsed = 0;
  for (int round = 0; round < mostRounds; ++round) {
    std::vector<Entrant*> field;
    for (Entrant& entrant : entrants)
      if (entrant.dropped.empty()) field.push_back(&entrant);
    if (field.size() == 1 && round >= fewestRounds) break;
    const double block = std::max(leastBlockSeconds, share / (usualRounds * static_cast<double>(field.size())));
    // As many of each: a link that lets the first bytes pass faster favours those that make few.
    const int calls = callsOf(block / 2, fastest(entrants));
    // Each round begins with another one, so that none always comes after the same.
    for (std::size_t turn = 0; turn < field.size(); ++turn) {
      Entrant& entrant = *field[(turn + static_cast<std::size_t>(round)) % field.size()];
      told(entrant.way.name);
      const Reading reading = timeOf(gauge, point, entrant, calls);
      entrant.blocks.push_back(reading.seconds);
      if (!begin) begin = reading.elapsed;
      elapsed = reading.elapsed - *begin;
    }
    if (round + 1 >= fewestRounds && elapsed > share) break;
    const double best = fastest(entrants);
    for (Entrant* entrant : field)
      if (entrant->blocks.size() >= tellingRounds && entrant->seconds() > behind * best && entrant != &entrants.front())
        entrant->dropped = fmt::format("{:.1f} times as long as the best", entrant->seconds() / best);
  }
  return entrants;
}

TunedSize resultOf(const Point& point, const std::vector<Entrant>& entrants) {
  std::vector<const Entrant*> order;
  for (const Entrant& entrant : entrants)
    if (entrant.seconds() > 0 && !entrant.isFree) order.push_back(&entrant);
  std::ranges::stable_sort(order, {}, &Entrant::seconds);
  TunedSize result;
  result.bytes = point.bytes();
  result.algorithm = order.front()->way.name;
  result.seconds = order.front()->seconds();
  if (order.size() > 1) {
    result.next = order[1]->way.name;
    result.nextSeconds = order[1]->seconds();
  }
  result.untuned = entrants.front().way.name;
  result.untunedSeconds = entrants.front().seconds();
  return result;
}

}  // namespace tacc::tune
