// On networks drawn at random: is the algorithm that is chosen the fastest of all, or nearly so?
//
// TACC_TEST_NETWORKS=3000 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "drawn_network.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/cost/cost_simulator.hpp"
#include "selection/network_selector.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

constexpr int mostHosts = 32, mostOddHosts = 24;

/// Message by message, every chunk of the call.
double playWhole(const NetworkSelector& selector, const CostMap& map, Collective collective, int root,
                 std::size_t bytes, const Algorithm& algorithm) {
  const PlanRequest request = selector.request(collective, root);
  const auto message = static_cast<double>(selector.messageBytes(collective, bytes));
  return simulate(makePlan(algorithm, request), map,
                  {static_cast<double>(bytes), message * exchangesOf(algorithm, request).blocks, 4});
}

struct Point {
  double regret;  // how many times as long as the best
  std::string what;
  double regretOfQuick = 1;  // of what the quick prices alone would choose, as they do for very many ranks
  double choosing = 0;       // seconds
};

/// Shares of the points, in percent.
struct Shares {
  explicit Shares(std::vector<double> all) : sorted(std::move(all)) { std::ranges::sort(sorted); }
  double within(double regret) const {
    return 100 * static_cast<double>(std::ranges::upper_bound(sorted, regret) - sorted.begin()) /
           static_cast<double>(sorted.size());
  }
  std::vector<double> sorted;
};

Shares sharesOf(const std::vector<Point>& points, double Point::*which) {
  std::vector<double> all;
  for (const Point& point : points) all.push_back(point.*which);
  return Shares(std::move(all));
}

/// All hosts of the network, or, of every fourth one, those that a job got: about two in three, here and there.
NetworkSelector selectorOfJob(const Topology& network, int number) {
  std::vector<std::string> hosts = network.hostNames();
  if (number % 4 == 2 && hosts.size() > 3) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::vector<std::string> some;
    for (const std::string& host : hosts)
      if (random() % 3 > 0) some.push_back(host);
    if (some.size() >= 2) hosts = std::move(some);
  }
  return NetworkSelector(costMachineOf(network, hosts, std::vector<int>(hosts.size(), 1), {}));
}

/// Calls on one network, each of another collective, size and root, so that over the networks all come up.
std::vector<Point> pointsOn(const Topology& network, NetworkSelector& selector, int number) {
  constexpr Collective collectives[] = {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                        Collective::allGather, Collective::reduceScatter};
  const CostMap map(selector.machine());
  const auto draw = static_cast<unsigned>(number);
  std::vector<Point> points;
  for (unsigned k = 0; k < 4; ++k) {
    const Collective collective = collectives[(draw + k) % 5];
    const bool isStack = partitionOf(collective) == Partition::stack;
    std::size_t bytes = (std::size_t{8} << ((draw * 7 + k * 5) % 22)) + (draw * 13 + k) % 7;
    if (isStack) bytes = std::max<std::size_t>(8, bytes / static_cast<std::size_t>(selector.ranks()));
    const auto ranks = static_cast<unsigned>(selector.ranks());
    const int root = isRooted(collective) ? static_cast<int>((draw * 31 + k * 17) % ranks) : 0;
    const std::clock_t start = std::clock();  // of the CPU: other programs run beside this one
    const Algorithm& chosen = selector.choose(collective, root, bytes, {});
    const double choosing = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double its = playWhole(selector, map, collective, root, bytes, chosen);
    NetworkQuestion question;
    question.request = selector.request(collective, root);
    question.bytes = static_cast<double>(bytes);
    question.messageBytes = static_cast<double>(selector.messageBytes(collective, bytes));
    const Algorithm& unplayed = *priceNetworkAlgorithms(question, map).front().algorithm;
    const double quick = &unplayed == &chosen ? its : playWhole(selector, map, collective, root, bytes, unplayed);
    double best = std::min(its, quick);
    std::string_view bestName = its <= quick ? chosen.name : unplayed.name;
    for (const NetworkCandidate& candidate : selector.explain(collective, root, bytes)) {
      // No plan beats the time in which its busiest link is at work.
      if (!candidate.isPossible || candidate.busiest * 0.5 > best) continue;
      const double seconds = playWhole(selector, map, collective, root, bytes, *candidate.algorithm);
      if (seconds >= best) continue;
      best = seconds;
      bestName = candidate.algorithm->name;
    }
    points.push_back({its / best,
                      fmt::format("network {}, {} ranks on it ({}): {} of {} bytes from {}: {} {:.1f} us, {} {:.1f} us",
                                  number, selector.ranks(), describeNetwork(network), nameOf(collective), bytes, root,
                                  chosen.name, its * 1e6, bestName, best * 1e6),
                      quick / best, choosing});
  }
  return points;
}

std::vector<Point> drawPoints(int number) {
  const Topology network =
      drawNetwork(static_cast<std::uint64_t>(number), numberFrom("TACC_TEST_MOST_HOSTS", mostHosts));
  NetworkSelector selector = selectorOfJob(network, number);
  return pointsOn(network, selector, number);
}

/// On networks that are less usual, with hosts of one or several ranks.
std::vector<Point> drawOddPoints(int number) {
  const OddNetwork odd =
      drawOddNetwork(static_cast<std::uint64_t>(number), numberFrom("TACC_TEST_MOST_HOSTS", mostOddHosts));
  CostMachine machine = costMachineOf(odd.topology, odd.topology.hostNames(), odd.ranksOf, {});
  if (machine.ranks > static_cast<int>(odd.ranksOf.size())) joinInMemory(machine, odd.topology.level(0));
  NetworkSelector selector(std::move(machine));
  return pointsOn(odd.topology, selector, number);
}

/// Of the networks asked for, or so many. `leastByPatterns`: percent of the points at which what patterns alone would
/// choose is within 10 %.
void measureRegret(const std::function<std::vector<Point>(int)>& pointsOf, int usual, double leastByPatterns) {
  const int first = numberFrom("TACC_TEST_FIRST_NETWORK", 0);
  const int networks = numberFrom("TACC_TEST_NETWORKS", isQuick() ? std::max(usual / 10, 20) : usual);
  std::vector<Point> points;
  for (int n = first; n < first + networks; ++n) std::ranges::move(pointsOf(n), std::back_inserter(points));
  std::ranges::sort(points, std::greater(), &Point::regret);
  const Shares ours = sharesOf(points, &Point::regret), quick = sharesOf(points, &Point::regretOfQuick),
               times = sharesOf(points, &Point::choosing);
  fmt::print("{} points on {} networks: {:.2f} % within 2 %, {:.2f} % within 10 %, worst {:.3f}\n", points.size(),
             networks, ours.within(1.02), ours.within(1.1), ours.sorted.back());
  fmt::print("by quick prices alone: {:.2f} % within 2 %, {:.2f} % within 10 %, {:.2f} % within 30 %, worst {:.3f}\n",
             quick.within(1.02), quick.within(1.1), quick.within(1.3), quick.sorted.back());
  fmt::print("choosing took {:.1f} ms, {:.1f} at most\n",
             1e3 * std::accumulate(times.sorted.begin(), times.sorted.end(), 0.0) / static_cast<double>(points.size()),
             1e3 * times.sorted.back());
  for (std::size_t i = 0; i < std::min<std::size_t>(points.size(), 8) && points[i].regret > 1.05; ++i)
    fmt::print("  {:.3f}  {}\n", points[i].regret, points[i].what);
  EXPECT_GE(ours.within(1.1), 98);
  EXPECT_LE(points.front().regret, 1.3) << points.front().what;
  EXPECT_GE(quick.within(1.1), leastByPatterns);
}

TEST(Regret, OfTheChoiceOnDrawnNetworks) { measureRegret(drawPoints, 300, 90); }

TEST(Regret, OfTheChoiceOnOddNetworks) { measureRegret(drawOddPoints, 50, 80); }

/// Networks on which a choice was far from the best once: calls from other roots than the first host, and plans of so
/// many messages that they kept a quick price which was wrong.
TEST(Regret, IsSmallWhereItWasLargeOnce) {
  for (const int number : {7025, 7071, 7164, 7236, 7248, 7396, 7408, 7571, 200635, 201636})
    for (const Point& point : drawPoints(number)) EXPECT_LE(point.regret, 1.1) << point.what;
  // So far apart that many chunks are under way before the first one has passed.
  for (const int number : {215, 884})
    for (const Point& point : drawOddPoints(number)) EXPECT_LE(point.regret, 1.1) << point.what;
}

/// What is played of a long call tells of the whole: a point is how far off it is.
TEST(SimulateLong, IsAsGoodAsPlayingEveryChunk) {
  std::vector<Point> points;
  for (int n = 0; n < 40; ++n) {
    NetworkSelector selector = selectorOfJob(drawNetwork(static_cast<std::uint64_t>(n), 24), n);
    const CostMap map(selector.machine());
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::reduce})
      for (const Algorithm& algorithm : algorithms()) {
        const PlanRequest request = selector.request(collective, 0);
        if (!algorithm.serves(request)) continue;
        const double chunks = 40, bytes = 1 << (16 + n % 6);
        const Plan plan = makePlan(algorithm, request);
        const CostCall call{chunks * bytes, bytes, 4};
        double budget = 1e9;
        const double whole = simulate(plan, map, call), quick = *simulateLong(plan, map, call, budget);
        points.push_back(
            {std::max(quick / whole, whole / quick), fmt::format("network {}: {} by {}: {:.4g} instead of {:.4g}", n,
                                                                 nameOf(collective), algorithm.name, quick, whole)});
      }
  }
  std::ranges::sort(points, std::greater(), &Point::regret);
  const auto share = [&](double error) {
    return static_cast<double>(std::ranges::count_if(points, [&](const Point& p) { return p.regret <= error; })) /
           static_cast<double>(points.size());
  };
  fmt::print("{} plans: {:.1f} % within 2 %, {:.1f} % within 5 %, worst {:.3f}\n", points.size(), 100 * share(1.02),
             100 * share(1.05), points.front().regret);
  EXPECT_GE(share(1.02), 0.97);
  EXPECT_GE(share(1.05), 0.98);
  EXPECT_LE(points.front().regret, 1.12) << points.front().what;
}

}  // namespace
}  // namespace tacc::test
