// On networks drawn at random: is the algorithm that is chosen the fastest of all, or nearly so?
//
// TACC_TEST_NETWORKS=3000 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "drawn_network.hpp"
#include "selection/cost_model.hpp"
#include "selection/cost_simulator.hpp"
#include "selection/network_chooser.hpp"

namespace tacc::test {
namespace {

constexpr int mostHosts = 32;

int numberFrom(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

NetworkChooser chooserOf(const Topology& network, int ranksAHost) {
  const std::vector<std::string>& hosts = network.hostNames();
  return NetworkChooser(costMachineOf(network, hosts, std::vector<int>(hosts.size(), ranksAHost), {}));
}

/// Message by message, every chunk of the call.
double playWhole(const NetworkChooser& chooser, const CostMap& map, Collective collective, int root, std::size_t bytes,
                 const Algorithm& algorithm) {
  const PlanRequest request = chooser.request(collective, root);
  const auto message = static_cast<double>(chooser.messageBytes(collective, bytes, 1));
  return simulate(algorithm.make(request), map,
                  {static_cast<double>(bytes), message * exchangesOf(algorithm, request).blocks, 4});
}

struct Point {
  double regret;  // how many times as long as the best
  std::string what;
};

TEST(Regret, OfTheChoiceOnDrawnNetworks) {
  const int first = numberFrom("TACC_TEST_FIRST_NETWORK", 0);
  const int networks = numberFrom("TACC_TEST_NETWORKS", std::getenv("TACC_TEST_QUICK") ? 30 : 300);
  constexpr Collective collectives[] = {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                        Collective::allGather, Collective::reduceScatter};
  std::vector<Point> points;
  std::vector<double> quick;    // regret of what the quick prices alone would choose, as they do for very many ranks
  double longest = 0, sum = 0;  // seconds of choosing
  for (int n = first; n < first + networks; ++n) {
    const Topology network = drawNetwork(static_cast<std::uint64_t>(n), numberFrom("TACC_TEST_MOST_HOSTS", mostHosts));
    NetworkChooser chooser = chooserOf(network, 1);
    const CostMap map(chooser.machine());
    // Each network gets other sizes, so that all between 8 bytes and 16 MiB come up.
    for (int k = 0; k < 4; ++k) {
      const Collective collective = collectives[(n + k) % 5];
      const bool isStack = partitionOf(collective) == Partition::stack;
      std::size_t bytes = (std::size_t{8} << ((n * 7 + k * 5) % 22)) + static_cast<std::size_t>(n * 13 + k) % 7;
      if (isStack) bytes = std::max<std::size_t>(8, bytes / static_cast<std::size_t>(chooser.ranks()));
      const std::clock_t start = std::clock();  // of the CPU: other programs run beside this one
      const int root =
          isRooted(collective)
              ? static_cast<int>(static_cast<unsigned>(n * 31 + k * 17) % static_cast<unsigned>(chooser.ranks()))
              : 0;
      const Algorithm& chosen = chooser.choose(collective, root, bytes, {});
      const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      longest = std::max(longest, took);
      sum += took;
      const double its = playWhole(chooser, map, collective, root, bytes, chosen);
      NetworkQuestion question;
      question.request = chooser.request(collective, root);
      question.bytes = static_cast<double>(bytes);
      question.messageBytes = static_cast<double>(chooser.messageBytes(collective, bytes, 1));
      const Algorithm& unplayed = *chooseNetworkAlgorithm(question, map).front().algorithm;
      const double quickOne = &unplayed == &chosen ? its : playWhole(chooser, map, collective, root, bytes, unplayed);
      double best = std::min(its, quickOne);
      std::string_view bestName = chosen.name;
      for (const NetworkCandidate& candidate : chooser.explain(collective, root, bytes)) {
        // No plan beats the time in which its busiest link is at work.
        if (!candidate.isPossible || candidate.busiest * 0.5 > best) continue;
        const double seconds = playWhole(chooser, map, collective, root, bytes, *candidate.algorithm);
        if (seconds >= best) continue;
        best = seconds;
        bestName = candidate.algorithm->name;
      }
      quick.push_back(quickOne / best);
      points.push_back({its / best, fmt::format("network {} ({}): {} of {} bytes from {}: {} {:.1f} us, {} {:.1f} us",
                                                n, describeNetwork(network), nameOf(collective), bytes, root,
                                                chosen.name, its * 1e6, bestName, best * 1e6)});
    }
  }
  std::ranges::sort(points, std::greater(), &Point::regret);
  const auto quickWithin = [&](double regret) {
    return static_cast<double>(std::ranges::count_if(quick, [&](double q) { return q <= regret; })) /
           static_cast<double>(quick.size());
  };
  const auto within = [&](double regret) {
    return static_cast<double>(std::ranges::count_if(points, [&](const Point& p) { return p.regret <= regret; })) /
           static_cast<double>(points.size());
  };
  fmt::print(
      "{} points on {} networks: {:.2f} % within 2 %, {:.2f} % within 10 %, worst {:.3f}; choosing took {:.1f} ms, "
      "{:.1f} at most\n",
      points.size(), networks, 100 * within(1.02), 100 * within(1.1), points.front().regret,
      sum * 1e3 / static_cast<double>(points.size()), longest * 1e3);
  fmt::print(
      "by the quick prices alone: {:.2f} % within 2 %, {:.2f} % within 10 %, {:.2f} % within 30 %, worst {:.3f}\n",
      100 * quickWithin(1.02), 100 * quickWithin(1.1), 100 * quickWithin(1.3), std::ranges::max(quick));
  for (std::size_t i = 0; i < std::min<std::size_t>(points.size(), 8) && points[i].regret > 1.05; ++i)
    fmt::print("  {:.3f}  {}\n", points[i].regret, points[i].what);
  EXPECT_GE(within(1.1), 0.98);
  EXPECT_LE(points.front().regret, 1.3) << points.front().what;
  EXPECT_GE(quickWithin(1.1), 0.9);
}

/// What is played of a long call tells of the whole: a point is how far off it is.
TEST(SimulateLong, IsAsGoodAsPlayingEveryChunk) {
  std::vector<Point> points;
  for (int n = 0; n < 40; ++n) {
    NetworkChooser chooser = chooserOf(drawNetwork(static_cast<std::uint64_t>(n), 24), 1);
    const CostMap map(chooser.machine());
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::reduce})
      for (const Algorithm& algorithm : algorithms()) {
        const PlanRequest request = chooser.request(collective, 0);
        if (!algorithm.serves(request)) continue;
        const double chunks = 40, bytes = 1 << (16 + n % 6);
        const Plan plan = algorithm.make(request);
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
  EXPECT_GE(share(1.02), 0.85);
  EXPECT_GE(share(1.05), 0.97);
  EXPECT_LE(points.front().regret, 1.12) << points.front().what;
}

}  // namespace
}  // namespace tacc::test
