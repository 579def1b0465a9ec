// Networks that answer as real ones do, with noise and shared uplinks: are their groups found?
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "fluid_network.hpp"
#include "golden.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/probe/probe_clusters.hpp"
#include "topology/probe/probe_session.hpp"

namespace tacc::test {
namespace {

/// groupOf[level][host]; costs per level, of the root last.
struct Network {
  std::vector<std::vector<std::uint32_t>> groupOf;
  std::vector<double> latency, uplink;  // latency: levels and root; uplink: levels
  double link = 1e9;                    // of each host
  double noise = 0.1;                   // standard deviation, relative
  double holes = 0;                     // share of samples that fail
  unsigned seed = 1;
  // Of hosts whose processors are busy:
  double latencyNoise = 0;                        // in addition to the other
  double cold = 1;                                // of the bandwidth, the first time that two meet
  double disturbed = 0;                           // share of samples with only half to all of the bandwidth
  std::map<std::uint32_t, double> ownLinks = {};  // of hosts whose link is another

  std::uint32_t hosts() const { return static_cast<std::uint32_t>(groupOf.front().size()); }
  std::size_t meet(ProbePair pair) const {
    std::size_t level = 0;
    while (level < groupOf.size() && groupOf[level][pair.a] != groupOf[level][pair.b]) ++level;
    return level;
  }
};

FluidNetwork fluid(const Network& network) {
  FluidNetwork result;
  for (std::uint32_t host = 0; host < network.hosts(); ++host) {
    const auto own = network.ownLinks.find(host);
    result.links.push_back(own == network.ownLinks.end() ? network.link : own->second);
  }
  result.latencies = network.latency;
  if (network.uplink.empty()) return result;
  result.groupOf = network.groupOf;
  for (std::size_t level = 0; level < network.uplink.size(); ++level)
    result.uplinks.emplace_back(network.hosts(), network.uplink[level]);
  return result;
}

Disturbances disturbancesOf(const Network& network) {
  Disturbances result;
  result.rates = network.noise;
  result.latencies = std::hypot(network.noise, network.latencyNoise);
  result.busy = network.disturbed;
  result.holes = network.holes;
  result.cold = network.cold;
  return result;
}

/// Runs rounds as a communicator would: flows that leave a group share its uplink.
class Simulator {
 public:
  explicit Simulator(const Network& network)
      : network_(fluid(network)), rounds_(network_, disturbancesOf(network), network.seed) {}
  std::vector<ProbeSample> run(const ProbeRound& round) { return rounds_.run(round); }

 private:
  FluidNetwork network_;
  FluidRounds rounds_;
};

std::vector<std::string> namesOf(std::uint32_t hosts) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < hosts; ++i) names.push_back("h" + std::to_string(i));
  return names;
}

struct Outcome {
  Topology topology;
  std::uint32_t rounds = 0;
};

Outcome probe(const Network& network, ProbeLimits limits = {}) {
  Simulator simulator(network);
  ProbeSession session(network.hosts(), limits);
  Outcome outcome;
  while (const auto round = session.next()) {
    std::vector<bool> busy(network.hosts());
    for (const ProbePair& pair : round->pairs) {
      EXPECT_NE(pair.a, pair.b);
      EXPECT_FALSE(busy[pair.a] || busy[pair.b]) << "a host is in two pairs of a round";
      busy[pair.a] = busy[pair.b] = true;
    }
    session.record(*round, simulator.run(*round));
    if (++outcome.rounds > 5000) {
      ADD_FAILURE() << "the session does not end";
      break;
    }
  }
  outcome.topology = session.topology(namesOf(network.hosts()));
  return outcome;
}

/// The same levels with the same groups; without uplinks, none.
bool hasSameGroups(const Topology& topology, const Network& network) {
  const int levels = network.uplink.empty() ? 0 : static_cast<int>(network.groupOf.size());
  if (topology.levels() != levels + 2) return false;
  for (std::uint32_t a = 0; a < network.hosts(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      const auto meet = topology.meet(*topology.find("h" + std::to_string(a)), *topology.find("h" + std::to_string(b)));
      if (levels > 0 && meet != static_cast<int>(network.meet({a, b})) + 1) return false;
    }
  }
  return true;
}

void expectSameGroups(const Topology& topology, const Network& network) {
  EXPECT_TRUE(hasSameGroups(topology, network)) << "seed " << network.seed << '\n' << treeText(topology);
}

/// Groups of these sizes, hosts dealt out so that names tell nothing.
std::vector<std::uint32_t> groups(const std::vector<std::uint32_t>& sizes, unsigned seed) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t g = 0; g < sizes.size(); ++g) result.insert(result.end(), sizes[g], g);
  std::shuffle(result.begin(), result.end(), std::mt19937(seed));
  return result;
}

TEST(Probe, FindsTwoSupernodesOfFour) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Network network{{groups({4, 4}, seed)}, {1e-6, 2e-6}, {1e9}, 1e9, 0.1, 0, seed};
    const Topology topology = probe(network).topology;
    expectSameGroups(topology, network);
    EXPECT_NEAR(topology.level(1).alpha.value() / 1e-6, 1, 0.25);
    EXPECT_NEAR(topology.level(2).alpha.value() / 2e-6, 1, 0.25);
    EXPECT_NEAR(topology.level(1).bandwidth.value() / 1e9, 1, 0.25);
    EXPECT_NEAR(topology.level(1).uplink.value() / 1e9, 1, 0.25);
  }
}

/// Switches are so fast that latency tells nothing: only shared uplinks do.
TEST(Probe, FindsSupernodesByTheirUplinksAlone) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Network network{{groups({4, 4}, seed)}, {1e-6, 1e-6}, {1e9}, 1e9, 0.05, 0, seed};
    expectSameGroups(probe(network).topology, network);
  }
}

TEST(Probe, FindsThreeOfThree) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Network network{{groups({3, 3, 3}, seed)}, {1e-6, 1.6e-6}, {1e9}, 1e9, 0.08, 0.05, seed};
    expectSameGroups(probe(network).topology, network);
  }
}

TEST(Probe, AFlatNetworkHasNoGroups) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const Network network{{std::vector<std::uint32_t>(7, 0)}, {1e-6}, {1e9}, 1e9, 0.1, 0.05, seed};
    const Topology topology = probe(network).topology;
    EXPECT_EQ(topology.levels(), 2) << seed;
    EXPECT_NEAR(topology.level(1).alpha.value() / 1e-6, 1, 0.25);
  }
}

/// As measured among the hosts of a virtual cluster whose two processors others use, too: latencies differ fourfold by
/// chance, the first message between two takes twice its time, and a fifth of the others is slow.
TEST(Probe, BusyProcessorsHideNoGroupsAndMakeNone) {
  constexpr int seeds = 40;
  for (const std::vector<std::uint32_t>& sizes :
       std::vector<std::vector<std::uint32_t>>{{4, 4}, {3, 3, 3}, {8}, {16}}) {
    int right = 0;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      Network network{{groups(sizes, seed)}, {30e-6, 30e-6}, {1e9}, 1e9, 0.05, 0, seed};
      if (sizes.size() == 1) network.uplink.clear();
      network.latencyNoise = 0.7;
      network.cold = 0.6;
      network.disturbed = 0.2;
      right += hasSameGroups(probe(network).topology, network);
    }
    EXPECT_GE(right, seeds - 2) << sizes.size() << " groups of " << sizes.front();
  }
}

/// What a host's own link carries, whether its group was known or not.
double linkIn(const Topology& topology, std::uint32_t host) {
  return topology.uplink(0, *topology.find("h" + std::to_string(host))).value_or(0);
}

TEST(Probe, TellsHostsLinksFromUplinks) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Network network{{groups({4, 4}, seed)}, {1e-6, 2e-6}, {0.25e9}, 1e9, 0.05, 0, seed};
    const Topology topology = probe(network).topology;
    expectSameGroups(topology, network);
    for (std::uint32_t host = 0; host < 8; ++host) EXPECT_NEAR(linkIn(topology, host) / 1e9, 1, 0.25) << seed;
    EXPECT_NEAR(topology.level(1).uplink.value() / 0.25e9, 1, 0.25);
  }
}

// The link of a slow host says what that host can do, wherever it stands, and not what a stream carries between others.
TEST(Probe, SlowHostsSlowNoLevel) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Network network{{groups({4, 4}, seed)}, {1e-6, 2e-6}, {2e9}, 1e9, 0.05, 0, seed};
    for (auto slow = 1 + random() % 3; slow > 0; --slow)
      network.ownLinks[static_cast<std::uint32_t>(random() % 8)] = 0.2e9;
    const Topology topology = probe(network, {.alonePairs = 2}).topology;
    for (int level = 1; level < topology.levels(); ++level) {
      const auto stream = topology.level(level).bandwidth;
      ASSERT_TRUE(stream) << seed;
      EXPECT_NEAR(*stream / 1e9, 1, 0.25) << "level " << level << " of seed " << seed << '\n' << treeText(topology);
    }
    for (const auto& [host, link] : network.ownLinks) EXPECT_NEAR(linkIn(topology, host) / link, 1, 0.25) << seed;
  }
}

/// A job of a site whose files say who is at which switch, and nothing else.
TEST(Probe, MeasuresTheFiguresOfKnownGroups) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Network network{{{0, 0, 0, 0, 1, 1, 1, 2, 2}}, {1e-6, 3e-6}, {0.5e9}, 1e9, 0.05, 0, seed};
    network.ownLinks[5] = 0.3e9;
    TopologyDraft draft;
    draft.hosts = namesOf(network.hosts());
    LevelDraft& level = draft.levels.emplace_back();
    level.level.name = "switch";
    level.level.alpha = 7e-6;
    for (const std::uint32_t group : network.groupOf[0]) level.groupOf.push_back("s" + std::to_string(group));
    const Topology known = build(std::move(draft));
    const std::vector<std::uint32_t> places = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    ProbeSession session(known, places);
    Simulator simulator(network);
    int rounds = 0;
    for (; const auto round = session.next(); ++rounds) session.record(*round, simulator.run(*round));
    EXPECT_LT(rounds, 64);
    const Topology found = session.complete(known, places);
    ASSERT_EQ(found.levels(), 3);
    EXPECT_EQ(found.groupName(1, 1), "s1");
    EXPECT_DOUBLE_EQ(found.level(1).alpha.value(), 7e-6) << "what was said stays";
    EXPECT_NEAR(found.level(1).bandwidth.value() / 1e9, 1, 0.25);
    EXPECT_NEAR(found.level(2).alpha.value() / 3e-6, 1, 0.25);
    EXPECT_NEAR(found.uplink(1, 0).value() / 0.5e9, 1, 0.25);
    EXPECT_NEAR(linkIn(found, 0) / 1e9, 1, 0.25) << seed;
    EXPECT_NEAR(linkIn(found, 5) / 0.3e9, 1, 0.25) << seed;
  }
}

/// What a bucket had saved up makes one of a pair's messages too fast, a busy processor another one too slow, and a
/// latency inside a group greater than one between groups.
TEST(Probe, OneLuckyStreamAndOneLateMessageTellNothing) {
  ProbeSession session(4);
  for (std::uint32_t a = 0; a < 4; ++a)
    for (std::uint32_t b = a + 1; b < 4; ++b)
      session.addPair({a, b}, a / 2 == b / 2 ? ProbeSample{20e-6, 100e6} : ProbeSample{60e-6, 20e6}, false);
  for (const double inside : {100e6, 101e6}) session.addPair({0, 1}, {50e-6, inside}, true);
  for (const double outside : {30e6, 34e6}) session.addPair({0, 2}, {30e-6, outside}, true);
  for (const double outside : {18e6, 30.1e6}) session.addPair({1, 3}, {35e-6, outside}, true);
  const Topology topology = session.topology({"a", "b", "c", "d"});
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.level(2).bandwidth, 30e6);
  EXPECT_EQ(topology.level(2).alpha, 30e-6);
  EXPECT_EQ(topology.level(1).bandwidth, 100e6);
  EXPECT_EQ(topology.level(1).alpha, 30e-6);
}

TEST(Probe, FindsUnequalGroupsOf32) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Network network{{groups({3, 6, 9, 14}, seed)}, {1e-6, 2e-6}, {2e9}, 1e9, 0.1, 0.1, seed};
    const Topology topology = probe(network).topology;
    expectSameGroups(topology, network);
    EXPECT_NEAR(topology.level(1).uplink.value() / 2e9, 1, 0.25);
  }
}

TEST(Probe, FindsTwoLevels) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Network network{{groups({4, 4, 4, 4, 4, 4}, seed), {}}, {1e-6, 2e-6, 5e-6}, {2e9, 3e9}, 1e9, 0.08, 0.02, seed};
    for (const std::uint32_t leaf : network.groupOf[0]) network.groupOf[1].push_back(leaf / 3);
    expectSameGroups(probe(network).topology, network);
  }
}

TEST(Probe, ALargeNetworkIsSampled) {
  Network network{{groups(std::vector<std::uint32_t>(8, 32), 3)}, {1e-6, 2.5e-6}, {8e9}, 1e9, 0.1, 0.02, 3};
  const Outcome outcome = probe(network);
  expectSameGroups(outcome.topology, network);
  EXPECT_LT(outcome.rounds, network.hosts()) << "not every pair was to be measured";
}

TEST(Probe, OneHostAndNoneNeedNoRounds) {
  EXPECT_FALSE(ProbeSession(0).next());
  EXPECT_FALSE(ProbeSession(1).next());
  EXPECT_EQ(ProbeSession(1).topology({"a"}).hosts(), 1u);
}

TEST(Probe, NothingMeasuredIsAFlatNetwork) {
  ProbeSession session(5);
  while (const auto round = session.next()) session.record(*round, std::vector<ProbeSample>(round->pairs.size()));
  const Topology topology = session.topology(namesOf(5));
  EXPECT_EQ(topology.levels(), 2);
  EXPECT_EQ(topology.level(1).alpha, std::nullopt);
}

TEST(Probe, SessionsWithEqualSamplesGoOnAlike) {
  const Network network{{groups({4, 4}, 1)}, {1e-6, 2e-6}, {1e9}, 1e9, 0.1, 0, 1};
  Simulator simulator(network);
  ProbeSession a(8), b(8);
  while (const auto round = a.next()) {
    const auto other = b.next();
    ASSERT_TRUE(other);
    EXPECT_EQ(round->pairs, other->pairs);
    const std::vector<ProbeSample> samples = simulator.run(*round);
    a.record(*round, samples);
    b.record(*other, samples);
  }
  EXPECT_EQ(a.topology(namesOf(8)), b.topology(namesOf(8)));
}

TEST(Probe, AFileOfMeasurementsIsRead) {
  std::string text = "# measured by hand\n";
  for (int a = 0; a < 6; ++a) {
    for (int b = a + 1; b < 6; ++b)
      text += fmt::format("pair n{} n{} {} 1GB/s\n", a, b, a / 3 == b / 3 ? "1us" : "3us");
  }
  text += "alone n0 n1 0.9us 1GB/s\noutward n[0-2] 1.5GB/s\n";
  const Topology topology = sourceOfFile(text, "t").read(text, "t");
  EXPECT_EQ(topology.groups(1), 2u);
  EXPECT_DOUBLE_EQ(topology.level(1).alpha.value(), 0.9e-6);
  EXPECT_DOUBLE_EQ(topology.level(2).alpha.value(), 3e-6);
  EXPECT_EQ(topology.level(1).uplink, 1.5e9);
  for (const char* bad :
       {"pair a a 1us 1GB/s", "pair a b 1us", "pair a b 0us 1GB/s", "pair a b 1us -1GB/s", "outward a 1"}) {
    EXPECT_THROW(topologySource("probe").read(bad, "t"), Error) << bad;
  }
}

}  // namespace
}  // namespace tacc::test
