// The links of described machines: which a message crosses, what they carry, what they are called.
#include "links.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "selection/network_selector.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::sim {
namespace {

using testing::ElementsAre;

Topology example(const std::string& name) {
  const std::string path = std::string(TACC_TEST_EXAMPLES) + "/" + name + ".toml";
  return topologyFromToml(readText(path), path);
}

/// "name GB/s" of every link that the message crosses.
std::vector<std::string> crossed(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  Links links(topology, {});
  std::vector<std::string> names;
  for (const int link : links.route(from, to).links) {
    const Link& one = links.links()[static_cast<std::size_t>(link)];
    names.push_back(fmt::format("{} {:.4g}", one.name, one.bytesPerSecond * 1e-9));
  }
  return names;
}

TEST(Links, OfATreeGoUpAndDown) {
  const Topology taihulight = example("taihulight");
  EXPECT_THAT(crossed(taihulight, 0, 1), ElementsAre("vn000000 out 6", "vn000001 in 6"));
  EXPECT_THAT(crossed(taihulight, 0, 300),
              ElementsAre("vn000000 out 6", "supernode 0 out 384", "supernode 1 in 384", "vn000300 in 6"));
}

TEST(Links, OfADragonflyJoinGroupsDirectly) {
  EXPECT_THAT(crossed(example("cray_xc_dragonfly"), 0, 1535),
              ElementsAre("nid00000 out 10", "cabinet pair 0 out 225.6", "cabinet pair 0 to cabinet pair 3 75.2",
                          "cabinet pair 3 in 225.6", "nid01535 in 10"));
}

TEST(Links, OfATorusGoTheShorterWayRound) {
  const Topology gemini = example("gemini_torus");
  EXPECT_THAT(crossed(gemini, 0, 1), ElementsAre("nid00000 out 6", "nid00001 in 6")) << "one router";
  // To the router (7, 0, 2).
  EXPECT_THAT(crossed(gemini, 0, 2 * (7 * 64 + 2)),
              ElementsAre("nid00000 out 6", "router 0 dimension 0 down 4.7", "router 448 dimension 2 up 4.7",
                          "router 449 dimension 2 up 4.7", "nid00900 in 6"));
}

TEST(Links, AreSharedByWaysThatCrossThem) {
  const Topology taihulight = example("taihulight");
  Links links(taihulight, {});
  const Route a = links.route(0, 256), b = links.route(1, 512);
  EXPECT_EQ(a.links[1], b.links[1]) << "the uplink of their supernode";
  EXPECT_NE(a.links[2], b.links[2]);
  EXPECT_EQ(links.links().size(), 7u) << "only what was asked for";
  EXPECT_DOUBLE_EQ(a.latency, 20e-6);
  EXPECT_DOUBLE_EQ(links.route(0, 1).latency, 10e-6);
  EXPECT_THROW(links.route(3, 3), Error);
}

TEST(Links, WhatNobodySaidIsAsTold) {
  const Topology plain = topologyFromToml("hosts = \"a,b\"\n", "test");
  Links links(plain, {7e-6, 3e9});
  const Route route = links.route(0, 1);
  EXPECT_DOUBLE_EQ(route.latency, 7e-6);
  EXPECT_DOUBLE_EQ(route.bytesPerSecond, 3e9);
  for (const Link& link : links.links()) EXPECT_DOUBLE_EQ(link.bytesPerSecond, 3e9);
}

/// Figures of cards and of streams, some said and some not.
std::string drawnHosts(std::mt19937& random) {
  const auto speed = [&] { return fmt::format("\"{} MB/s\"", 100 + random() % 20000); };
  std::string text = "hosts = \"n[1-4]\"\n[node]\nlatency = \"1 us\"\n";
  if (random() % 3 != 0) text += "uplink = " + speed() + "\n";
  if (random() % 3 == 0) text += "uplinks = { n2 = " + speed() + " }\n";
  for (const char* name : {"leaf", "root"}) {
    text += fmt::format("[[level]]\nname = \"{}\"\n", name);
    if (std::string(name) == "leaf") text += "rule = \"position / 2\"\n";
    if (random() % 2 == 0) text += "bandwidth = " + speed() + "\n";
  }
  return text;
}

TEST(Links, CarryOfOneStreamWhatTheModelSays) {
  std::mt19937 random(20);
  for (int trial = 0; trial < 200; ++trial) {
    const std::string text = drawnHosts(random);
    const Topology topology = topologyFromToml(text, "drawn");
    const NetworkSpeed unsaid{5e-6, 1e9};
    for (const std::uint32_t to : {1u, 2u}) {
      Links links(topology, unsaid);
      const Route route = links.route(0, to);
      double carried = route.bytesPerSecond;
      for (const int link : route.links)
        carried = std::min(carried, links.links()[static_cast<std::size_t>(link)].bytesPerSecond);
      const CostMachine model = costMachineOf(topology, {topology.host(0), topology.host(to)}, {1, 1}, unsaid);
      EXPECT_NEAR(carried, std::min(model.ports.least(), 1 / model.levels.back().beta), carried * 1e-9) << text;
    }
  }
}

}  // namespace
}  // namespace tacc::sim
