// What is suggested when calls are slow: algorithms that are good if one part of the network has become slow.
#include "selection/online/slowdown_hypotheses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace tacc {
namespace {

/// Two groups of four behind uplinks as fast as one host.
CostMachine twoGroups(double uplink = 25e6) {
  CostMachine machine;
  machine.ranks = 8;
  machine.levels = {{{0, 4}, 50e-6, 1 / 25e6, uplink}, {{0}, 100e-6, 1 / 25e6, 0}};
  machine.ports = 25e6;
  machine.gamma = 1e-10;
  machine.overhead = 2e-6;
  return machine;
}

NetworkQuestion allReduceOf(double bytes) {
  NetworkQuestion question;
  question.request = {Collective::allReduce, 8, 0, {{4, 4}}, {}};
  question.bytes = bytes;
  return question;
}

double priceOf(const Algorithm& algorithm, const NetworkQuestion& question, const CostMachine& machine) {
  const auto candidates = priceNetworkAlgorithms(question, CostMap(machine));
  return std::ranges::find(candidates, &algorithm, &NetworkCandidate::algorithm)->seconds;
}

TEST(NetworkSuspects, TheFirstFewHoldAGoodOneForASlowUplink) {
  for (const double bytes : {65536.0, 1048576.0, 8388608.0})
    for (const double slowing : {2.0, 4.0, 10.0}) {
      const NetworkQuestion question = allReduceOf(bytes);
      const Algorithm& ring = *findAlgorithm("ring");
      const CostMachine slow = twoGroups(25e6 / slowing);
      const double ratio = priceOf(ring, question, slow) / priceOf(ring, question, twoGroups());
      const auto suggested = suggestAlgorithms(question, twoGroups(), ring, ratio);
      const auto best = priceNetworkAlgorithms(question, CostMap(slow)).front();
      double found = priceOf(ring, question, slow);
      for (std::size_t i = 0; i < std::min<std::size_t>(6, suggested.size()); ++i)
        found = std::min(found, priceOf(*suggested[i], question, slow));
      EXPECT_LE(found, 1.05 * best.seconds) << bytes << " bytes, " << slowing << " times slower";
    }
}

TEST(NetworkSuspects, SuggestionsServeTheCallAndStandOnce) {
  const NetworkQuestion question = allReduceOf(1e6);
  const Algorithm& ring = *findAlgorithm("ring");
  for (const double ratio : {0.3, 1.0, 1.7, 5.0, 1000.0}) {
    const auto suggested = suggestAlgorithms(question, twoGroups(), ring, ratio);
    EXPECT_FALSE(suggested.empty());
    for (const Algorithm* algorithm : suggested) {
      EXPECT_TRUE(algorithm->serves(question.request)) << algorithm->name;
      EXPECT_NE(algorithm, &ring);
      EXPECT_EQ(std::ranges::count(suggested, algorithm), 1) << algorithm->name;
    }
    EXPECT_EQ(suggested, suggestAlgorithms(question, twoGroups(), ring, ratio)) << "a pure function";
  }
}

/// Seven are tried.
TEST(NetworkSuspects, TryingTheFirstFewCostsLittle) {
  for (const double bytes : {65536.0, 1048576.0, 8388608.0}) {
    const NetworkQuestion question = allReduceOf(bytes);
    const Algorithm& ring = *findAlgorithm("ring");
    const CostMachine slow = twoGroups(25e6 / 4);
    const double old = priceOf(ring, question, slow);
    const auto suggested = suggestAlgorithms(question, twoGroups(), ring, old / priceOf(ring, question, twoGroups()));
    double sum = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(7, suggested.size()); ++i)
      sum += priceOf(*suggested[i], question, slow);
    EXPECT_LT(sum, 7 * 1.1 * old) << bytes;
  }
}

TEST(NetworkSuspects, WithoutAReasonTheModelsOrderStays) {
  const NetworkQuestion question = allReduceOf(1e6);
  const auto candidates = priceNetworkAlgorithms(question, CostMap(twoGroups()));
  const auto suggested = suggestAlgorithms(question, twoGroups(), *candidates.front().algorithm, 1.0);
  for (std::size_t i = 0; i < suggested.size(); ++i) EXPECT_EQ(suggested[i], candidates[i + 1].algorithm);
}

}  // namespace
}  // namespace tacc
