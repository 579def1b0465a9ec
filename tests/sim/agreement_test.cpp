// The cost simulator against SimGrid, on networks drawn at random: every plan takes as long in the one as in the other.
//
// TACC_TEST_NETWORKS=600 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "drawn_trials.hpp"
#include "selection/cost/cost_simulator.hpp"

namespace tacc::sim {
namespace {

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
  const int networks = numberFrom("TACC_TEST_NETWORKS", 60);
  const auto [machines, trials, outcomes] = playDrawnTrials(networks, [](int) { return 1; });

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
