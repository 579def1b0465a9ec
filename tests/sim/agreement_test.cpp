// The cost simulator against SimGrid, on networks drawn at random: every plan takes as long in the one as in the other.
//
// TACC_TEST_NETWORKS=600 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "drawn_network.hpp"
#include "selection/cost/cost_simulator.hpp"
#include "trial.hpp"

namespace tacc::sim {
namespace {

constexpr int mostHosts = 12;
constexpr double mostWork = 3e5;  // times the partners of a rank; more is not played

int numberOr(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// The cost simulator's seconds divided by SimGrid's, of each call.
struct Ratios {
  std::vector<double> all;
  double worst = 1;
  std::string what;

  double within(double most) const {
    return 100.0 * static_cast<double>(std::ranges::count_if(all, [&](double r) { return std::abs(r - 1) <= most; })) /
           static_cast<double>(all.size());
  }
  void add(double ratio, const std::string& call) {
    all.push_back(ratio);
    if (std::abs(std::log(ratio)) <= std::abs(std::log(worst))) return;
    worst = ratio;
    what = call;
  }
};

TEST(Agreement, OfTheCostSimulatorAndSimGrid) {
  const int first = numberOr("TACC_TEST_FIRST_NETWORK", 0), networks = numberOr("TACC_TEST_NETWORKS", 60);
  constexpr Collective collectives[] = {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                        Collective::allGather, Collective::reduceScatter};
  std::list<Machine> machines;
  std::vector<Trial> trials;
  for (int n = first; n < first + networks; ++n) {
    Machine& machine = machines.emplace_back(test::drawNetwork(static_cast<std::uint64_t>(n), mostHosts), mostHosts,
                                             Place::block, NetworkSpeed());
    const Collective collective = collectives[n % 5];
    const double bytes = static_cast<double>(std::size_t{64} << (n * 7 % 17)) * machine.ranks();
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.serves(machine.selector().request(collective, 0)))
        trials.push_back({&machine, collective, bytes, &algorithm});
  }
  const std::vector<Outcome> outcomes = performAll(trials, mostWork, 2, [](std::size_t) {});

  Ratios all;
  std::map<std::string, Ratios> byAlgorithm;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!outcomes[i].isReplayed) continue;
    const Trial& trial = trials[i];
    const Plan plan = makePlan(*trial.algorithm, trial.machine->selector().request(trial.collective, 0));
    const CostMap map(trial.machine->selector().machine());
    const double own = simulate(plan, map, trial.machine->cut(trial.collective, trial.bytes, plan.blocks));
    const std::string call = fmt::format(
        "{} of {} bytes by {} on {}: {:.1f} us, SimGrid {:.1f} us", nameOf(trial.collective), trial.bytes,
        trial.algorithm->name, test::describeNetwork(trial.machine->topology()), own * 1e6, outcomes[i].seconds * 1e6);
    all.add(own / outcomes[i].seconds, call);
    byAlgorithm[std::string(trial.algorithm->name)].add(own / outcomes[i].seconds, call);
  }
  for (const auto& [name, its] : byAlgorithm)
    if (its.within(0.02) < 100)
      fmt::print("{}: {:.1f} % of {} within 2 %, {}\n", name, its.within(0.02), its.all.size(), its.what);
  fmt::print("{} plans on {} networks: {:.2f} % within 2 % of SimGrid, {:.2f} % within 5 %, worst {:.3f}\n",
             all.all.size(), networks, all.within(0.02), all.within(0.05), all.worst);
  EXPECT_GE(all.within(0.02), 98) << all.what;
  EXPECT_LE(std::abs(all.worst - 1), 0.05) << all.what;
}

}  // namespace
}  // namespace tacc::sim
