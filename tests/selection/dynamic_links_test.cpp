// Calls that links decide, on networks drawn at random whose links become slow and recover. What a call takes is found
// by playing its plan message by message, which the choice knows nothing of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "choosing_ranks.hpp"
#include "comm/cluster/online_tuner.hpp"
#include "drawn_network.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/cost/cost_simulator.hpp"
#include "selection/network_selector.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

constexpr int mostHosts = 16;
constexpr double noise = 0.1;

const Algorithm& algorithmOf(int number) { return algorithms()[static_cast<std::size_t>(number)]; }
int numberOf(const Algorithm& algorithm) { return static_cast<int>(&algorithm - algorithms().data()); }

/// One link so many times slower: an uplink of a group, or a host's own.
CostMachine slowed(CostMachine machine, std::mt19937& random, double factor) {
  std::vector<std::size_t> levels;
  for (std::size_t l = 0; l + 1 < machine.levels.size(); ++l)
    if (machine.levels[l].uplinks.limit()) levels.push_back(l);
  const auto slow = [&](const Capacities& links, int count, double usual) {
    std::vector<double> each;
    for (int i = 0; i < count; ++i) each.push_back(links.of(i) > 0 ? links.of(i) : usual);
    each[random() % each.size()] /= factor;
    return Capacities(each);
  };
  if (!levels.empty()) {
    CostLevel& level = machine.levels[levels[random() % levels.size()]];
    level.uplinks = slow(level.uplinks, static_cast<int>(level.begins.size()), level.uplinks.most());
  } else {
    machine.ports = slow(machine.ports, machine.ranks, machine.ports.most());
  }
  return machine;
}

/// A network and calls on it that take some milliseconds and more.
class Scene {
 public:
  explicit Scene(unsigned number)
      : random_(number),
        selector_(selectorOf(drawNetwork(number, mostHosts))),
        usual_(selector_.machine()),
        slow_(slowed(selector_.machine(), random_, 4 << (number % 3))) {
    const Collective collectives[] = {Collective::allReduce, Collective::allGather, Collective::reduceScatter};
    collective_ = collectives[number % 3];
    while (price() < 3e-3) bytes_ *= 2;
  }

  double price() { return selector_.explain(collective_, 0, bytes_).front().seconds; }
  int chosen() { return numberOf(selector_.choose(collective_, 0, bytes_, {})); }
  double seconds(int option, bool isSlow) {
    const auto [found, isNew] = seconds_.try_emplace({option, isSlow}, 0);
    if (!isNew) return found->second;
    const PlanRequest request = selector_.request(collective_, 0);
    const auto message = static_cast<double>(selector_.messageBytes(collective_, bytes_));
    const Algorithm& algorithm = algorithmOf(option);
    double budget = std::numeric_limits<double>::infinity();
    return found->second = *simulateLong(
               makePlan(algorithm, request), isSlow ? slow_ : usual_,
               {static_cast<double>(bytes_), message * exchangesOf(algorithm, request).blocks, 4}, budget);
  }
  double best(bool isSlow) {
    double least = std::numeric_limits<double>::infinity();
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.serves(selector_.request(collective_, 0)))
        least = std::min(least, seconds(numberOf(algorithm), isSlow));
    return least;
  }
  /// What may be tried, the model's choice first.
  std::vector<int> options() {
    return OnlineTuner::optionsOf(CallTuner::Kind::ofLinks, algorithmOf(chosen()),
                                  selector_.explain(collective_, 0, bytes_));
  }
  /// `isSlow`: in which calls one link is.
  ChoosingRanks ranks(std::function<bool(std::uint64_t)> isSlow, unsigned seed) {
    return ChoosingRanks(
        3, CallTuner(CallTuner::Kind::ofLinks, options(), price(), 0),
        [this, isSlow](int option, std::uint64_t call) { return seconds(option, isSlow(call)); }, noise, seed);
  }
  std::string describe() const { return fmt::format("{} of {} bytes", nameOf(collective_), bytes_); }

 private:
  static NetworkSelector selectorOf(const Topology& network) {
    const std::vector<std::string>& hosts = network.hostNames();
    return NetworkSelector(costMachineOf(network, hosts, std::vector<int>(hosts.size(), 1), {}));
  }

  std::mt19937 random_;
  NetworkSelector selector_;
  CostMap usual_, slow_;
  Collective collective_ = Collective::allReduce;
  std::size_t bytes_ = 1024;
  std::map<std::pair<int, bool>, double> seconds_;
};

/// The numbers of scenes where it is worth the trouble: the model's choice takes much longer than another one then.
std::vector<unsigned> worthwhileScenes(std::size_t count) {
  std::vector<unsigned> numbers;
  for (unsigned number = 0; numbers.size() < count; ++number) {
    Scene scene(number);
    if (scene.seconds(scene.chosen(), true) > 1.4 * scene.best(true)) numbers.push_back(number);
  }
  return numbers;
}

/// How many scenes of `all` are gone through.
std::size_t sampleOf(std::size_t all) { return isQuick() ? all / 5 : all; }

/// Whenever the link becomes slow: 50 calls later the best of the options is settled, which mostly is nearly the best
/// of all.
TEST(DynamicLinks, ASlowLinkIsAnsweredWithin50Calls) {
  const std::size_t cases = sampleOf(60);
  std::size_t found = 0, replaced = 0;
  double before = 0, after = 0;  // logarithms of how many times as long as the best calls take
  for (const unsigned number : worthwhileScenes(cases)) {
    Scene scene(number);
    const std::uint64_t step = 20 + number % 61;
    ChoosingRanks ranks = scene.ranks([step](std::uint64_t call) { return call >= step; }, number);
    ranks.calls(step);
    EXPECT_EQ(ranks.choice().explorations(), 0u) << number;
    ranks.calls(50);
    EXPECT_GE(ranks.choice().explorations(), 1u) << number;
    const double old = scene.seconds(scene.chosen(), true), now = scene.seconds(ranks.settled(), true);
    double least = old;
    for (const int option : scene.options()) least = std::min(least, scene.seconds(option, true));
    // Trials do not tell apart what noise hides, nor is replaced what another one would save less than 5 % of.
    EXPECT_LE(now, (1 + noise) / 0.95 * least) << number << ": " << scene.describe();
    if (now <= 1.2 * scene.best(true)) ++found;
    before += std::log(old / scene.best(true));
    after += std::log(now / scene.best(true));
    if (now < 0.9 * old) ++replaced;
  }
  fmt::print(
      "{} cases: the model's choice takes {:.2f} times as long as the best, what is settled 50 calls later {:.3f}; {} "
      "within a fifth\n",
      cases, std::exp(before / static_cast<double>(cases)), std::exp(after / static_cast<double>(cases)), found);
  EXPECT_GE(found, cases * 95 / 100);
  EXPECT_GE(replaced, cases * 2 / 3);
}

/// A link that is slow for 2,000 calls and then as it was: all calls, trials among them, to those of the best
/// algorithm.
TEST(DynamicLinks, ASlowLinkCostsLittle) {
  const std::size_t cases = sampleOf(150);
  constexpr std::uint64_t slowCalls = 2000;
  double model = 0, soon = 0, slow = 0, recovered = 0;  // logarithms
  for (const unsigned number : worthwhileScenes(cases)) {
    Scene scene(number);
    const std::uint64_t step = 20 + number % 61;
    ChoosingRanks ranks =
        scene.ranks([=](std::uint64_t call) { return call >= step && call < step + slowCalls; }, number);
    ranks.calls(step);
    const auto costOf = [&](std::uint64_t calls, bool isSlow) {
      const double before = ranks.spent();
      ranks.calls(calls);
      return (ranks.spent() - before) / scene.best(isSlow);
    };
    const double first = costOf(200, true);
    soon += std::log(first / 200);
    slow += std::log((first + costOf(slowCalls - 200, true)) / slowCalls);
    recovered += std::log(costOf(slowCalls, false) / slowCalls);
    model += std::log(scene.seconds(scene.chosen(), true) / scene.best(true));
  }
  const auto mean = [cases](double logarithms) { return std::exp(logarithms / static_cast<double>(cases)); };
  fmt::print(
      "{} cases: the model's choice takes {:.3f} times as long as the best; with trials, 200 calls {:.3f}, 2,000 calls "
      "{:.3f}, 2,000 calls after the link is as it was {:.3f}\n",
      cases, mean(model), mean(soon), mean(slow), mean(recovered));
  EXPECT_LE(mean(soon), 1.25);
  EXPECT_LE(mean(slow), 1.06);
  EXPECT_LE(mean(recovered), 1.08);
}

/// Where the choice feels that the link is fast again, within 50 calls; else when the model's choice is tried again,
/// which takes no longer than the link was slow.
TEST(DynamicLinks, ALinkThatRecoversIsNoticed) {
  for (const unsigned number : worthwhileScenes(sampleOf(60))) {
    Scene scene(number);
    const std::uint64_t step = 20 + number % 61, end = step + 100 + number % 50;
    ChoosingRanks ranks = scene.ranks([=](std::uint64_t call) { return call >= step && call < end; }, number);
    ranks.calls(end);
    const int then = ranks.settled();
    const bool isFelt = scene.seconds(then, true) > 1.6 * scene.seconds(then, false);
    ranks.calls(isFelt ? 50 : 2 * (end - step));
    // What saves less than a fifth is not worth a change that nobody asked for.
    EXPECT_LE(scene.seconds(ranks.settled(), false), 1.28 * scene.best(false)) << number << ": " << scene.describe();
    const int switches = ranks.switches();
    ranks.calls(2000);
    EXPECT_LE(ranks.switches(), switches + 1) << number;
    EXPECT_LE(scene.seconds(ranks.settled(), false), 1.28 * scene.best(false)) << number << ": " << scene.describe();
  }
}

/// Noise, and calls that something else makes slow, lead to nothing.
TEST(DynamicLinks, NothingIsTriedOnAQuietNetwork) {
  for (unsigned number = 0; number < sampleOf(60); ++number) {
    Scene scene(number);
    ChoosingRanks ranks = scene.ranks([](std::uint64_t call) { return call % 60 < 3; }, number);
    ranks.calls(2000);
    EXPECT_EQ(ranks.choice().explorations(), 0u) << number << ": " << scene.describe();
    EXPECT_EQ(ranks.ranOf(scene.chosen(), 2000), 2000);
  }
}

}  // namespace
}  // namespace tacc::test
