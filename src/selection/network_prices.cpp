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
/// Prices that are nearer to each other are alike: so exact is the model.
constexpr double alike = 1.02;
/// Of all plans together: 0.15 s, of which each has half of what those before it have left. Those that are too much
/// work keep their quick price. Of many ranks each event takes longer, as they are more than the caches hold.
double mostWorkOf(int ranks) {
  return ranks <= mostRanksPlayed ? 6e6 : ranks <= 1024 ? 2e6 : ranks <= 4096 ? 1.5e6 : 8e5;
}

/// The network where messages on a link hinder each other: queues serve who came first, and a stream that a second link
/// holds back, or a short message behind long ones, gets less than its even share.
CostMap whereMessagesHinderEachOther(const CostMap& map) {
  CostMachine machine = map.machine();
  machine.crowding = 2;
  return CostMap(std::move(machine));
}

/// Those that are alike with the fastest, in the order of the mean of their prices and those where messages wait: a
/// plan that has to get each message at once to be as fast as others is not.
void settleTies(std::vector<NetworkCandidate>& candidates, const NetworkQuestion& question, const CostMap& map,
                double budget) {
  const double most = alike * candidates.front().seconds;
  const auto end = std::ranges::find_if_not(
      candidates, [&](const NetworkCandidate& candidate) { return candidate.isPlayed && candidate.seconds <= most; });
  const std::vector<NetworkCandidate> tied(candidates.begin(), end);
  if (tied.size() < 2) return;
  const CostMap crowded = whereMessagesHinderEachOther(map);
  std::vector<std::pair<double, std::size_t>> order;
  for (const NetworkCandidate& candidate : tied) {
    const CostCall call{question.bytes, candidate.chunkBytes, question.window};
    const auto seconds = play(*candidate.algorithm, question.request, crowded, call, budget);
    if (!seconds) return;
    order.emplace_back(candidate.seconds + *seconds, order.size());
  }
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) candidates[i] = tied[order[i].second];
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
  settleTies(candidates, question, map, budget);
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
          "{}; {}", isLeast ? "the fastest" : "as fast as any, and the fastest where messages hinder each other",
          burdenOf(one));
    else
      one.reason = fmt::format("{:.2f} times as long; {}", one.seconds / best, burdenOf(one));
  }
}

}  // namespace tacc
