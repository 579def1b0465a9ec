// What a survey measures by the clock: links let the first bytes of a message pass at once, pieces are seen late by as
// much as a busy machine lets them wait, and some hosts are much slower than the others. Are the groups found that
// share an uplink, and what each host carries, every time?
//
// TACC_TEST_NETWORKS=1000 draws more of them, TACC_TEST_FIRST_NETWORK=1000 others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "fluid_network.hpp"
#include "selection/draw.hpp"
#include "support/settings.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/tree_text.hpp"

namespace tacc::test {
namespace {

constexpr Disturbances timed{
    .rates = 0.01, .unfairness = 0.1, .latencies = 0.5, .cold = 0.7, .bucket = 144 * 1024, .late = 1e-3};

struct DrawnCluster {
  Topology topology;
  std::set<std::string> narrow;
};

/// Two switches with three to five hosts each, or three with three or four, whose uplinks carry a third to a half of
/// what the hosts send; up to two hosts with a tenth to a half of the others' links.
DrawnCluster drawCluster(std::uint64_t number) {
  Draw draw(number + 0x7153d);
  const double link = draw.logUniform(100, 800) * 1e6 / 8;
  TopologyDraft draft;
  draft.node.uplink = link;
  draft.root.alpha = 60e-6;
  LevelDraft level;
  level.level.alpha = 30e-6;
  const int groups = draw.between(2, 3), size = draw.between(3, groups == 2 ? 5 : 4);
  for (int group = 0; group < groups; ++group) {
    for (int host = 0; host < size; ++host) {
      level.groupOf.push_back(std::to_string(group));
      draft.hosts.push_back(fmt::format("n{:02}", draft.hosts.size()));
    }
    level.uplinks[std::to_string(group)] = size * link * draw.logUniform(0.4, 0.55);
  }
  DrawnCluster cluster;
  for (int n = draw.between(1, 2); n > 0; --n) {
    const std::string& host = draft.hosts[static_cast<std::size_t>(draw.below(groups * size))];
    draft.hostUplinks[host] = link * draw.logUniform(0.1, 0.5);
    cluster.narrow.insert(host);
  }
  draft.levels.push_back(std::move(level));
  cluster.topology = build(std::move(draft));
  return cluster;
}

/// The hosts of each group but for narrow ones, which may be with the others or by themselves: they hardly load the
/// uplink, so no rate tells.
std::set<std::set<std::string>> groupsWithout(const std::set<std::string>& narrow, const Topology& topology) {
  std::set<std::set<std::string>> groups;
  for (std::uint32_t group = 0; topology.root() > 1 && group < topology.groups(1); ++group) {
    std::set<std::string> members;
    for (std::uint32_t host = 0; host < topology.hosts(); ++host)
      if (topology.groupOf(1, host) == group && !narrow.contains(topology.host(host)))
        members.insert(topology.host(host));
    if (members.size() > 1) groups.insert(members);
  }
  return groups;
}

double farthestLink(const Topology& truth, const Topology& found) {
  double farthest = 0;
  for (std::uint32_t host = 0; host < truth.hosts(); ++host) {
    const double link = found.uplink(0, *found.findHost(truth.host(host))).value();
    farthest = std::max(farthest, std::abs(std::log(link / truth.uplink(0, host).value())));
  }
  return farthest;
}

TEST(ProbeTimed, GroupsAndLinksAreFoundBesideSlowHosts) {
  const int first = numberFrom("TACC_TEST_FIRST_NETWORK", 0), networks = numberFrom("TACC_TEST_NETWORKS", 60);
  int grouped = 0, linked = 0;
  std::string wrong;
  for (int number = first; number < first + networks; ++number) {
    const DrawnCluster cluster = drawCluster(static_cast<std::uint64_t>(number));
    const Topology found = surveyed(cluster.topology, timed, static_cast<unsigned>(number));
    const bool isGrouped = groupsWithout(cluster.narrow, found) == groupsWithout(cluster.narrow, cluster.topology);
    const bool isLinked = farthestLink(cluster.topology, found) < 0.15;
    grouped += isGrouped;
    linked += isLinked;
    if (!isGrouped || !isLinked)
      wrong += fmt::format("network {}:\n{}found as\n{}\n", number, treeText(cluster.topology), treeText(found));
  }
  fmt::print("{} networks: groups found of {}, links within 15 % of {}\n", networks, grouped, linked);
  EXPECT_GE(grouped * 100, networks * 93) << wrong;
  EXPECT_GE(linked * 100, networks * 95) << wrong;
}

}  // namespace
}  // namespace tacc::test
