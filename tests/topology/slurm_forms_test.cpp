// One network in all the forms in which Slurm tells it: random trees as topology.conf, topology.yaml, as scontrol
// prints them and as the addresses of a job's hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "slurm_shapes.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"

namespace tacc::test {
namespace {

using Names = std::vector<std::string>;

struct Switch {
  std::string name;
  std::vector<std::size_t> children;  // come before it
  Names hosts;                        // only where it has no children
  Names all;                          // below it
  int level = 0;                      // as Slurm counts: of a leaf 0, else one more than the highest below
};

/// Each behind those below it; the last is a root, and sometimes another one is, too.
std::vector<Switch> randomTree(std::mt19937& random) {
  std::vector<Switch> switches;
  int hosts = 0;
  const std::function<std::size_t(int)> grow = [&](int depth) {
    Switch one;
    if (depth > 0 && random() % 5 > 0) {
      for (auto left = 1 + random() % 3; left > 0; --left) one.children.push_back(grow(depth - 1));
    } else {
      for (auto left = random() % 4; left > 0; --left) one.hosts.push_back(fmt::format("n{:03}", hosts++));
    }
    one.all = one.hosts;
    for (const std::size_t child : one.children) {
      one.all.insert(one.all.end(), switches[child].all.begin(), switches[child].all.end());
      one.level = std::max(one.level, switches[child].level + 1);
    }
    one.name = fmt::format("s{}", switches.size());
    switches.push_back(std::move(one));
    return switches.size() - 1;
  };
  grow(3);
  if (random() % 4 == 0) grow(2);
  return switches;
}

Names childrenOf(const std::vector<Switch>& switches, const Switch& one) {
  Names names;
  for (const std::size_t child : one.children) names.push_back(switches[child].name);
  return names;
}

/// The lines in any order.
std::string shuffled(Names lines, std::mt19937& random) {
  std::ranges::shuffle(lines, random);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string asConf(const std::vector<Switch>& switches, std::mt19937& random) {
  Names lines;
  for (const Switch& one : switches) {
    std::string line = "SwitchName=" + one.name;
    if (!one.hosts.empty()) line += " Nodes=" + foldHosts(one.hosts);
    if (!one.children.empty()) line += " Switches=" + foldHosts(childrenOf(switches, one));
    lines.push_back(line);
  }
  return shuffled(lines, random);
}

std::string asPrinted(const std::vector<Switch>& switches, std::mt19937& random) {
  Names lines;
  for (const Switch& one : switches) {
    std::string line = fmt::format("SwitchName={} Level={} LinkSpeed=1", one.name, one.level);
    if (!one.all.empty()) line += " Nodes=" + foldHosts(one.all);
    if (!one.children.empty()) line += " Switches=" + foldHosts(childrenOf(switches, one));
    lines.push_back(line);
  }
  return shuffled(lines, random);
}

std::string asYaml(const std::vector<Switch>& switches, std::mt19937& random) {
  Names lines;
  for (const Switch& one : switches) {
    std::string line = "      - switch: " + one.name;
    if (!one.hosts.empty() || random() % 2 == 0) line += "\n        nodes: " + foldHosts(one.hosts);
    if (!one.children.empty() || random() % 2 == 0)
      line += "\n        children: " + foldHosts(childrenOf(switches, one));
    lines.push_back(line);
  }
  return "- topology: t\n  tree:\n    switches:\n" + shuffled(lines, random);
}

/// As Slurm makes them: from the highest level of the whole tree to the leaves, empty where the host has no switch.
std::vector<HostClues> asAddresses(const std::vector<Switch>& switches, const Names& hosts) {
  int highest = 0;
  for (const Switch& one : switches) highest = std::max(highest, one.level);
  std::vector<HostClues> clues;
  for (const std::string& host : hosts) {
    HostClues& clue = clues.emplace_back();
    clue.host = host;
    for (int level = highest; level >= 0; --level) {
      for (const Switch& one : switches)
        if (one.level == level && std::ranges::find(one.all, host) != one.all.end()) clue.slurmAddress += one.name;
      clue.slurmAddress += '.';
      clue.slurmPattern += "switch.";
    }
    clue.slurmAddress += host;
    clue.slurmPattern += "node";
  }
  return clues;
}

/// How many hosts are below the lowest switch that two hosts share: the more, the farther they are from each other.
/// Switches with the same hosts below are one here, as they are for messages.
std::size_t distance(const std::vector<Switch>& switches, const std::string& a, const std::string& b,
                     const Names& hosts) {
  std::size_t least = hosts.size() + 1;  // no switch joins them
  for (const Switch& one : switches) {
    const auto has = [&](const std::string& host) { return std::ranges::find(one.all, host) != one.all.end(); };
    if (has(a) && has(b)) least = std::min(least, static_cast<std::size_t>(std::ranges::count_if(hosts, has)));
  }
  return least;
}

/// Seen from each host, the others are near and far as the switches say.
void expectOrder(const std::vector<Switch>& switches, const Topology& topology, const std::string& text) {
  const Names& hosts = topology.hostNames();
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  for (std::uint32_t a = 0; a < hosts.size(); ++a) {
    std::vector<std::size_t> to;
    for (const std::string& other : hosts) to.push_back(distance(switches, hosts[a], other, hosts));
    for (std::uint32_t b = 0; b < hosts.size(); ++b) {
      for (std::uint32_t c = 0; c < b; ++c) {
        if (a == b || a == c) continue;
        ASSERT_EQ(sign(topology.meet(a, b), topology.meet(a, c)), sign(to[b], to[c]))
            << hosts[a] << " to " << hosts[b] << " and " << hosts[c] << "\n"
            << text;
      }
    }
  }
}

TEST(SlurmForms, SayTheSame) {
  std::mt19937 random(21);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<Switch> switches = randomTree(random);
    const std::string conf = asConf(switches, random);
    std::set<std::string> all;
    for (const Switch& one : switches) all.insert(one.all.begin(), one.all.end());
    if (all.empty()) continue;
    ++compared;
    const Topology topology = topologyFromSlurmConf(conf, "t.conf");
    ASSERT_EQ(topology.hosts(), all.size());
    expectOrder(switches, topology, conf);
    EXPECT_EQ(topologyFromSlurmConf(asPrinted(switches, random), "t.txt"), topology) << conf;
    if (hasYaml()) {
      EXPECT_EQ(topologyFromSlurmYaml(asYaml(switches, random), "t.yaml"), topology) << conf;
    }

    Names job;
    std::ranges::sample(all, std::back_inserter(job), 2 + random() % 6, random);
    const Topology ofJob = topologyFromSlurmAddresses(asAddresses(switches, job));
    ASSERT_EQ(ofJob.hosts(), job.size()) << conf;
    expectOrder(switches, ofJob, conf);
    expectOrder(switches, topology.only(job), conf);
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace tacc::test
