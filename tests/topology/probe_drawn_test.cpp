// Networks drawn at random, what a survey would measure on them with noise, and whether the model that comes out is
// theirs: levels, groups, what leaves each, what each host carries.
//
// TACC_TEST_NETWORKS=1000 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "fluid_network.hpp"
#include "selection/drawn_network.hpp"
#include "support/settings.hpp"
#include "topology/model/tree_text.hpp"

namespace tacc::test {
namespace {

using Members = std::vector<std::string>;

Members membersOf(const Topology& network, int level, std::uint32_t group) {
  Members members;
  for (std::uint32_t host = 0; host < network.hosts(); ++host)
    if (network.groupOf(level, host) == group) members.push_back(network.host(host));
  std::ranges::sort(members);
  return members;
}

/// Groups of several hosts, not of all, with the level at which they lie.
std::map<Members, std::pair<int, std::uint32_t>> groupsOf(const Topology& network) {
  std::map<Members, std::pair<int, std::uint32_t>> groups;
  for (int level = 1; level < network.root(); ++level)
    for (std::uint32_t group = 0; group < network.groups(level); ++group) {
      Members members = membersOf(network, level, group);
      if (members.size() > 1 && members.size() < network.hosts()) groups.try_emplace(members, level, group);
    }
  return groups;
}

/// The hosts from..to of an order that has those of `inside` first, paired with those outside from behind.
std::vector<ProbePair> outward(const Members& inside, const Topology& network) {
  std::vector<std::uint32_t> in, out;
  for (std::uint32_t host = 0; host < network.hosts(); ++host)
    (std::ranges::binary_search(inside, network.host(host)) ? in : out).push_back(host);
  std::vector<ProbePair> pairs;
  for (std::size_t i = 0; i < std::min(in.size(), out.size()); ++i) pairs.push_back({in[i], out[i]});
  return pairs;
}

/// Of `pairs`, hosts of one network, in another that has them under the same names.
std::vector<ProbePair> sameIn(const Topology& other, const Topology& network, std::vector<ProbePair> pairs) {
  for (ProbePair& pair : pairs) pair = {*other.find(network.host(pair.a)), *other.find(network.host(pair.b))};
  return pairs;
}

double makespan(const FluidNetwork& network, const std::vector<ProbePair>& pairs) {
  const std::vector<double> alike(pairs.size(), 1.0);
  double longest = 0;
  for (const auto& message : FluidRounds::play(network, pairs, alike, alike))
    longest = std::max(longest, message.back().until);
  return longest;
}

struct Recovery {
  int patterns = 0, within = 0;  // traffic whose time is within a quarter in the model
  double worst = 1;
  int invented = 0;  // groups that cut through one of the network
  int rounds = 0;
  std::string what;
};

using DrawsNetwork = Topology(std::uint64_t number, int mostHosts);

/// Every group of the network sends outward, all of its hosts at once; so does each host; and all hosts to those half
/// of them away.
Recovery recover(int number, const Disturbances& disturbances, DrawsNetwork* draw, int mostHosts) {
  Recovery recovery;
  const Topology network = draw(static_cast<std::uint64_t>(number), mostHosts);
  if (!isTree(network) || network.hosts() < 4) return recovery;
  const Topology found = surveyed(network, disturbances, static_cast<unsigned>(number), &recovery.rounds);
  const FluidNetwork truth = fluidOf(network), model = fluidOf(found);
  std::vector<std::vector<ProbePair>> patterns;
  for (const auto& [members, place] : groupsOf(network)) patterns.push_back(outward(members, network));
  std::vector<ProbePair> far;
  for (std::uint32_t host = 0; host < network.hosts() / 2; ++host) far.push_back({host, host + network.hosts() / 2});
  patterns.push_back(far);
  for (std::uint32_t host = 0; host + 1 < network.hosts(); ++host) patterns.push_back({{host, host + 1}});
  for (const auto& pairs : patterns) {
    const double ratio = makespan(model, sameIn(found, network, pairs)) / makespan(truth, pairs);
    const double off = std::max(ratio, 1 / ratio);
    ++recovery.patterns;
    recovery.within += off < 1.25;
    recovery.worst = std::max(recovery.worst, off);
  }
  const auto real = groupsOf(network);
  for (const auto& [members, place] : groupsOf(found)) {
    const bool cuts = std::ranges::any_of(real, [&](const auto& group) {
      Members common;
      std::ranges::set_intersection(members, group.first, std::back_inserter(common));
      return !common.empty() && common.size() < members.size() && common.size() < group.first.size();
    });
    recovery.invented += cuts;
  }
  recovery.what = fmt::format("network {}: {}\n{}", number, describeNetwork(network), treeText(found));
  return recovery;
}

struct Need {
  double within;  // percent of the patterns within a quarter
  double cut;     // percent of the networks at most in which a group was invented
};

void expectRecovered(const Disturbances& disturbances, DrawsNetwork* draw, int mostHosts, int networks, Need need) {
  const int first = numberFrom("TACC_TEST_FIRST_NETWORK", 0);
  networks = numberFrom("TACC_TEST_NETWORKS", networks);
  int drawn = 0, patterns = 0, within = 0, cut = 0, rounds = 0;
  Recovery worst;
  for (int number = first; number < first + networks; ++number) {
    Recovery one = recover(number, disturbances, draw, mostHosts);
    if (one.patterns == 0) continue;
    ++drawn;
    patterns += one.patterns;
    within += one.within;
    cut += one.invented > 0;
    rounds += one.rounds;
    if (std::getenv("TACC_TEST_TELL") != nullptr && (one.worst > 1.4 || one.invented > 0))
      fmt::print("{}\noff {:.2f}, {} of {} within, {} invented\n", one.what, one.worst, one.within, one.patterns,
                 one.invented);
    if (one.worst > worst.worst) worst = std::move(one);
  }
  const double share = 100.0 * within / patterns, wrong = 100.0 * cut / drawn;
  fmt::print(
      "{} networks, {} patterns: {:.2f} % within a quarter, worst {:.2f}; {:.1f} % with a group that cuts one; {} "
      "rounds each\n",
      drawn, patterns, share, worst.worst, wrong, rounds / drawn);
  EXPECT_GE(share, need.within) << worst.what;
  EXPECT_LE(wrong, need.cut);
}

constexpr Disturbances quiet{.rates = 0.03, .unfairness = 0.05, .latencies = 0.03, .cold = 0.6};
constexpr Disturbances busy{
    .rates = 0.05, .unfairness = 0.2, .latencies = 0.1, .sleeps = 0.5, .busy = 0.1, .cold = 0.6};

TEST(ProbeDrawn, QuietNetworksAreRecovered) { expectRecovered(quiet, drawNetwork, 12, 100, {96, 5}); }

TEST(ProbeDrawn, BusyNetworksAreRecovered) { expectRecovered(busy, drawNetwork, 12, 100, {96, 6}); }

TEST(ProbeDrawn, NarrowHostsAreRecovered) {
  expectRecovered(quiet, drawNarrowHosts, 12, 100, {98, 5});
  expectRecovered(busy, drawNarrowHosts, 12, 100, {98, 8});
}

}  // namespace
}  // namespace tacc::test
