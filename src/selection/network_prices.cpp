#include "selection/network_prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/cost/cost_simulator.hpp"

namespace tacc {
namespace {

constexpr int mostChunks = 4096;

NetworkCandidate finished(NetworkCandidate candidate, const NetworkQuestion& question, const ChunkCost& chunk,
                          int chunks) {
  candidate.isPossible = true;
  candidate.chunkBytes = question.bytes / chunks;
  candidate.seconds = secondsOf(chunk, chunks, question.window);
  candidate.alone = chunk.alone;
  candidate.busiest = chunk.busiest * chunks;
  return candidate;
}

/// Time and load grow with the bytes nearly on a straight line, so two sizes tell which cut is best.
NetworkCandidate price(const Algorithm& algorithm, const NetworkQuestion& question, const CostMap& map) {
  NetworkCandidate candidate;
  candidate.algorithm = &algorithm;
  if (!algorithm.serves(question.request)) return candidate;
  const Exchanges exchanges = exchangesOf(algorithm, question.request);
  const auto priced = [&](double bytes) { return priceChunk(exchanges, question.request, map, bytes); };
  if (question.messageBytes > 0) {
    const CostCall call{question.bytes, question.messageBytes * exchanges.blocks, question.window};
    const int chunks = chunksOf(call);
    return finished(std::move(candidate), question, priced(call.bytes / chunks), chunks);
  }
  const ChunkCost whole = priced(question.bytes);
  const double most = std::min<double>(mostChunks, question.bytes / std::max(1.0, question.leastChunk));
  ChunkCost best = whole;
  int bestChunks = 1;
  if (most >= 2) {
    const ChunkCost least = priced(question.bytes / mostChunks);
    double seconds = secondsOf(whole, 1, question.window);
    for (int chunks = 2; chunks <= most; chunks *= 2) {
      const double share = (1.0 / chunks - 1.0 / mostChunks) / (1 - 1.0 / mostChunks);
      ChunkCost part = whole;
      part.alone = std::lerp(least.alone, whole.alone, share);
      part.busiest = std::lerp(least.busiest, whole.busiest, share);
      part.held = std::lerp(least.held, whole.held, share);
      const double cut = secondsOf(part, chunks, question.window);
      if (cut >= seconds) continue;
      seconds = cut;
      bestChunks = chunks;
      best = part;
    }
  }
  return finished(std::move(candidate), question, best, bestChunks);
}

void sortCandidates(std::vector<NetworkCandidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const NetworkCandidate& a, const NetworkCandidate& b) {
    return std::tuple(!a.isPossible, a.seconds) < std::tuple(!b.isPossible, b.seconds);
  });
}

/// The quick price of a chunk is never off by so much. That of many chunks may be, where latencies are long and few
/// ranks hold up the next chunk: there what one chunk and the busiest link take tells what cannot be the fastest.
constexpr double playedWithin = 4;
bool mayBeFastest(const NetworkCandidate& candidate, double fastest) {
  return candidate.seconds <= playedWithin * fastest || std::max(candidate.alone, candidate.busiest) <= fastest;
}
/// Only plans within this many times the least price may come before it, as they depend less on links being shared
/// well.
constexpr double near = 1.3;
/// How many messages each other message on a link counts as, where links are shared worse.
constexpr double hindering = 1.05;
/// Links with so many times what the narrowest carries are taken to carry even more, at most so many times as much.
constexpr double muchWider = 2, mostWidening = 2;
/// Of all plans together: 0.2 to 0.3 s, of which each has half of what those before it have left. Those that are too
/// much work keep their quick price. Of many ranks each event takes longer, as they are more than the caches hold.
double mostWorkOf(int ranks) {
  return ranks <= mostRanksPlayed ? 6e6 : ranks <= 1024 ? 2e6 : ranks <= 4096 ? 1.5e6 : 8e5;
}

/// Of ports, uplinks, links of a level and streams.
double narrowestOf(const CostMachine& machine) {
  double narrowest = 1e300;
  const auto take = [&](double capacity) {
    if (capacity > 0) narrowest = std::min(narrowest, capacity);
  };
  take(machine.ports.least());
  for (const CostLevel& level : machine.levels) {
    take(level.uplinks.least());
    take(level.linkBytesPerSecond);
    if (level.beta > 0) take(1 / level.beta);
  }
  return narrowest;
}

/// The network where links are shared worse than they could be: what one message cannot use there nobody gets, and each
/// gets a little less than its even share. Queues serve who came first. But links that are much wider than the
/// narrowest take even less time: what passes one that has little to do does so at once, as far as buckets and queues
/// reach.
CostMap whereLinksAreSharedWorse(const CostMap& map) {
  CostMachine machine = map.machine();
  machine.crowding = hindering;
  const double narrowest = narrowestOf(machine);
  const auto wider = [&](double capacity) {
    return capacity * std::clamp(capacity / (muchWider * narrowest), 1.0, mostWidening);
  };
  const auto widen = [&](Capacities& capacities, int links) {
    if (!capacities.limit()) return;
    std::vector<double> each;
    for (int link = 0; link < links; ++link) each.push_back(wider(capacities.of(link)));
    capacities = std::move(each);
  };
  widen(machine.ports, machine.ranks);
  for (CostLevel& level : machine.levels) {
    widen(level.uplinks, static_cast<int>(level.begins.size()));
    level.linkBytesPerSecond = wider(level.linkBytesPerSecond);
    if (level.beta > 0) level.beta = 1 / wider(1 / level.beta);
  }
  return CostMap(std::move(machine));
}

/// Those near the least price, in the order of the mean of their prices and those where links are shared worse: a plan
/// that needs each message at once, or what others leave of a link, is not as fast as its price says. Nor is it where
/// the network was measured wrong, as what is left then is left elsewhere. And what a plan saves on wide links, at the
/// cost of narrow ones, is not all saved.
void preferRobust(std::vector<NetworkCandidate>& candidates, const NetworkQuestion& question, const CostMap& map,
                  double budget) {
  const double most = near * candidates.front().seconds;
  const auto end = std::ranges::find_if_not(
      candidates, [&](const NetworkCandidate& candidate) { return candidate.isPlayed && candidate.seconds <= most; });
  const std::vector<NetworkCandidate> rivals(candidates.begin(), end);
  if (rivals.size() < 2) return;
  const CostMap worse = whereLinksAreSharedWorse(map);
  std::vector<std::pair<double, std::size_t>> order;
  for (const NetworkCandidate& candidate : rivals) {
    const CostCall call{question.bytes, candidate.chunkBytes, question.window};
    const auto seconds = play(*candidate.algorithm, question.request, worse, call, budget);
    if (!seconds) return;
    order.emplace_back(candidate.seconds + *seconds, order.size());
  }
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) candidates[i] = rivals[order[i].second];
}

/// Those that may be the fastest, in the order of their quick prices.
void playBest(std::vector<NetworkCandidate>& candidates, const NetworkQuestion& question, const CostMap& map) {
  double fastest = candidates.front().seconds, budget = mostWorkOf(map.ranks());
  for (NetworkCandidate& candidate : candidates) {
    if (!candidate.isPossible) break;
    if (!mayBeFastest(candidate, fastest)) continue;
    const CostCall call{question.bytes, candidate.chunkBytes, question.window};
    const double share = budget / 2;
    double left = share;
    const auto played = play(*candidate.algorithm, question.request, map, call, left);
    budget -= share - left;
    candidate.isPlayed = played.has_value();
    candidate.seconds = played.value_or(candidate.seconds);
    fastest = std::min(fastest, candidate.seconds);
  }
  sortCandidates(candidates);
  preferRobust(candidates, question, map, budget);
}

/// What costs the most: the waiting for messages one after the other, or the bytes at one place.
std::string_view burdenOf(const NetworkCandidate& candidate) {
  if (candidate.busiest > 0.7 * candidate.seconds)
    return "the busiest link, port or CPU is at work nearly all the time";
  if (candidate.busiest < 0.3 * candidate.seconds) return "mostly waiting for one message after the other";
  return "partly waiting, partly bytes at the busiest link, port or CPU";
}

}  // namespace

double quickPrice(const Algorithm& algorithm, const NetworkQuestion& question, const CostMap& map) {
  return price(algorithm, question, map).seconds;
}

std::vector<NetworkCandidate> priceNetworkAlgorithms(const NetworkQuestion& question, const CostMap& map) {
  if (question.request.ranks != map.ranks())
    fail(taccInvalidArgument, "cost model: the call is of {} ranks, the machine has {}", question.request.ranks,
         map.ranks());
  std::vector<NetworkCandidate> candidates;
  for (const Algorithm& algorithm : algorithms()) candidates.push_back(price(algorithm, question, map));
  sortCandidates(candidates);
  if (question.isPlayed && question.messageBytes > 0) playBest(candidates, question, map);
  giveReasons(candidates, question.request);
  return candidates;
}

void giveReasons(std::vector<NetworkCandidate>& candidates, const PlanRequest& request) {
  const double best = candidates.front().seconds;
  const bool isLeast = std::ranges::none_of(
      candidates, [&](const NetworkCandidate& one) { return one.isPossible && one.seconds < best; });
  for (NetworkCandidate& one : candidates) {
    if (!one.isPossible)
      one.reason = one.algorithm->looksAtLayout && !request.hasLayout()
                       ? "does not serve this call, or not without groups or dimensions of the ranks"
                       : "does not serve this call";
    else if (&one == candidates.data())
      one.reason = fmt::format(
          "{}; {}", isLeast ? "the fastest" : "nearly the fastest, and the least slow where messages hinder each other",
          burdenOf(one));
    else
      one.reason = fmt::format("{:.2f} times as long; {}", one.seconds / best, burdenOf(one));
  }
}

}  // namespace tacc
