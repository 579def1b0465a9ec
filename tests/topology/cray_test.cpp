// What is read of Cray's systems: places, cards, and the links of Slingshot, Aries and Gemini.
#include "topology/sources/cray.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/text_file.hpp"
#include "golden.hpp"
#include "topology/sources/slingshot.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

TEST(Cray, ReadsPlaces) {
  const auto cname = parseCname("c12-1c2s15n3");
  ASSERT_TRUE(cname);
  EXPECT_EQ(cname->cabinet, 12u);
  EXPECT_EQ(cname->row, 1u);
  EXPECT_EQ(cname->slot, 15u);
  const auto xname = parseXname("x1000c7s3b1n0");
  ASSERT_TRUE(xname);
  EXPECT_EQ(xname->cabinet, 1000u);
  const auto place = parseSlingshotMac("02:00:00:01:28:c5");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->group, 0x128c5u >> 11);
  EXPECT_EQ(place->switchInGroup, 0x128c5u >> 6 & 31);
  EXPECT_EQ(place->port, 5u);
  for (const char* text : {"", "c0", "c0-0c0s0", "c0-0c0s0n0x", "c-0c0s0n0", "c0-0c0s0n99999999999"})
    EXPECT_FALSE(parseCname(text));
  for (const char* text : {"", "x", "x1000c0s0b0", "x1c0s0b0n0 "}) EXPECT_FALSE(parseXname(text));
  for (const char* text :
       {"", "00:00:00:00:00:00", "02:00:00:f0:00:00", "02:00:00:01:28", "02-00-00-01-28-c5", "02:00:00:+1:28:c5"}) {
    EXPECT_FALSE(parseSlingshotMac(text)) << text;
  }
}

TEST(Cray, AnXcHasBladesChassisAndPairsOfCabinets) {
  const Topology topology = golden("xc40.hosts");
  ASSERT_EQ(topology.levels(), 5);
  EXPECT_EQ(topology.level(3).name, "cabinet pair");
  EXPECT_EQ(topology.groups(3), 2u);
  EXPECT_EQ(topology.level(4).wiring, Wiring::allToAll);
  EXPECT_EQ(meet(topology, "nid00000", "nid00003"), 1);
  EXPECT_EQ(meet(topology, "nid00000", "nid00189"), 3);  // the next chassis of the same pair
  EXPECT_EQ(meet(topology, "nid00000", "nid00192"), 3);
  EXPECT_EQ(meet(topology, "nid00000", "nid00384"), 4);
}

TEST(Cray, AnExHasCabinetsAndSlingshotGroups) {
  const Topology topology = golden("ex.hosts");
  EXPECT_EQ(topology.groupName(3, 1), "x1001");
  std::vector<HostClues> hosts(3);
  const char* macs[] = {"02:00:00:00:00:01", "02:00:00:00:00:42", "02:00:00:00:08:01"};
  for (std::size_t i = 0; i < 3; ++i) {
    hosts[i].host = "n" + std::to_string(i);
    hosts[i].cards = {{macs[i]}};
  }
  const Topology slingshot = topologyFromSlingshot(hosts);
  EXPECT_EQ(meet(slingshot, "n0", "n1"), 2);
  EXPECT_EQ(meet(slingshot, "n0", "n2"), 3);
  hosts[1].host = "n1";
  hosts[1].cname = "c0-0c0s0n0";
  EXPECT_EQ(topologyFromCrayNames(hosts).hosts(), 0u);  // not all hosts have one
  hosts[0].cname = "bad";
  EXPECT_THAT(messageOf([&] { topologyFromCrayNames(hosts); }), HasSubstr("host n0: \"bad\""));
}

/// What pdsh makes of cxi_stat on three hosts, whose lines it mixes.
TEST(Cray, CardsOfSlingshotHaveASpeed) {
  const auto cardOf = [](const std::string& host, int card, const std::string& mac, const std::string& speed,
                         const std::string& state = "up") {
    return fmt::format(
        "{0}: Device: cxi{1}\n{0}:     Description: SS11 200Gb 1P N\n{0}:     Network device: hsn{1}\n{0}:     MAC: "
        "{2}\n{0}:     NID: 2026 (0x007ea)\n{0}:     PCIE speed/width: 16.0 GT/s PCIe x16\n{0}:         Link MTU: "
        "2112\n{0}:         Link speed: {3}\n{0}:         Link state: {4}\n{0}:     Rates:\n",
        host, card, mac, speed, state);
  };
  const auto read = [](const std::string& text) { return sourceOfFile(text, "f").read(text, "f"); };
  const std::string one = cardOf("n1", 0, "02:00:00:00:07:ea", "BS_200G") +
                          cardOf("n1", 1, "02:00:00:00:07:ab", "BS_200G"),
                    two = cardOf("n2", 0, "02:00:00:00:07:81", "BS_200G") +
                          cardOf("n2", 1, "02:00:00:00:07:82", "bs200G"),
                    three = cardOf("n3", 0, "02:00:00:00:10:5f", "CK_400G") +
                            cardOf("n3", 1, "02:00:00:00:10:1f", "unknown", "down");
  std::string mixed;
  const std::vector<std::string_view> ofOne = linesOf(one), ofTwo = linesOf(two), ofThree = linesOf(three);
  for (std::size_t i = 0; i < ofOne.size(); ++i) mixed += fmt::format("{}\n{}\n{}\n", ofOne[i], ofTwo[i], ofThree[i]);
  for (const std::string& text : {one + two + three, mixed}) {
    const Topology topology = read(text);
    ASSERT_EQ(topology.hosts(), 3u);
    EXPECT_EQ(meet(topology, "n1", "n2"), 2) << "another switch of the group";
    EXPECT_EQ(meet(topology, "n1", "n3"), 3);
    EXPECT_EQ(topology.level(0).rails, 2u);
    EXPECT_DOUBLE_EQ(*topology.uplink(0, 0), 50e9);
    EXPECT_DOUBLE_EQ(*topology.uplink(0, 2), 50e9) << "one card of 400 Gbit/s; the other is down";
    EXPECT_DOUBLE_EQ(*topology.level(3).bandwidth, 25e9);
  }
  const Topology named = read("n1 x1000c0s0b0n0\nn2 x1000c1s0b0n0\n" + one + two);
  EXPECT_EQ(named.groupName(3, 0), "x1000") << "names go before addresses";
  EXPECT_DOUBLE_EQ(*named.uplink(0, 1), 50e9);
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"Device: cxi0\n", "f:1: cxi_stat's lines need the name of their host"},
           {one + "n2: MAC: 02:00:00:00:07:ea\n", "f:21: the host n2 tells of a card before its \"Device:\""},
           {one + "n1: MAC: 5c:bc:3d:af:cb:e3\n", "f:21: \"5c:bc:3d:af:cb:e3\" is no address of a Slingshot card"},
           {one + cardOf("n2", 0, "02:00:00:00:07:81", "BS_200G", "down"), "the host n2 has no card whose link is up"}})
    EXPECT_THAT(messageOf([&] { read(text); }), HasSubstr(message));
}

/// Two groups of two switches: two links between the switches of a group, and from each switch one to the other group;
/// one port of group 1 is down. The switches' numbers and jacks follow no order.
TEST(Cray, TheLinksOfSlingshotAreADragonfly) {
  const auto read = [](const std::string& text) { return sourceOfFile(text, "f").read(text, "f"); };
  std::string table = "+-----+\n| xname | type | dst | port_num | status | mac | speed |\n+-----+\n", hosts, row;
  const char* names[] = {"x3000c0r41", "x3000c0r42", "x3001c0r41", "x3001c0r42"};
  const auto port = [&](int node, int number, int to, const char* status = "True") {
    row = fmt::format("| {}j{}p{} | fabric | {}j{} | {} | {} | 02:00:00:00:{:02x}:{:02x} | BS_200G |\n", names[node],
                      number / 2, number % 2, names[to], 9, number, status, node / 2 << 3, (node % 2 << 6) + number);
    table += row;
  };
  for (const int group : {0, 2})
    for (const int number : {10, 11}) {
      port(group, number, group + 1);
      port(group + 1, number, group);
    }
  port(0, 20, 2);
  port(1, 20, 3);
  port(2, 20, 0, "False");
  port(3, 20, 1);
  for (int node = 0; node < 4; ++node)
    for (const int number : {1, 2})
      hosts +=
          fmt::format("n{} 02:00:00:00:{:02x}:{:02x}\n", 2 * node + number, node / 2 << 3, (node % 2 << 6) + number);
  const Topology topology = read(hosts + table);
  ASSERT_EQ(topology.hosts(), 8u);
  ASSERT_EQ(topology.levels(), 4);
  EXPECT_EQ(meet(topology, "n1", "n2"), 1);
  EXPECT_EQ(meet(topology, "n2", "n3"), 2);
  EXPECT_EQ(meet(topology, "n4", "n5"), 3);
  const double link = 25e9;
  EXPECT_DOUBLE_EQ(*topology.uplink(1, 0), 3 * link);
  EXPECT_DOUBLE_EQ(*topology.uplink(1, 2), 2 * link) << "a port is down";
  EXPECT_DOUBLE_EQ(*topology.uplink(2, 0), 2 * link);
  EXPECT_DOUBLE_EQ(*topology.uplink(2, 1), 1 * link);
  EXPECT_EQ(topology.level(3).wiring, Wiring::allToAll);
  EXPECT_EQ(topology.level(3).links, 1u) << "as few as one of them has";
  EXPECT_DOUBLE_EQ(*topology.level(3).linkBandwidth, link);
  const std::string head = "| xname | dst | status | mac | speed |\n";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"| x1c0r0j1p0 | fabric |\n", "f:9: the table of links has no names of columns above its rows"},
           {"| xname | dst | status | speed |\n", "f:9: the table of links has no column \"mac\""},
           {head + "| x1c0r0j1p0 | True |\n", "f:10: the row has 2 columns, but there are 5"},
           {head + "| a | b | True | 5c:bc:3d:af:cb:e3 | BS_200G |\n", "f:10: \"5c:bc:3d:af:cb:e3\" is no address"},
           {head + "| a | b | True | 02:00:00:00:08:31 | fast |\n", "f:10: \"fast\" is no speed of a link"}})
    EXPECT_THAT(messageOf([&] { read(hosts + text); }), HasSubstr(message));
  EXPECT_THAT(messageOf([&] { read("n1 x1000c0s0b0n0\n" + table); }), HasSubstr("needs the address of a card"));
}

TEST(Cray, SpeedsOfSlingshotAreLettersAndGigabits) {
  EXPECT_EQ(parseSlingshotSpeed("BS_200G"), 25e9);
  EXPECT_EQ(parseSlingshotSpeed("ck400G"), 50e9);
  EXPECT_EQ(parseSlingshotSpeed("CD_50G"), 6.25e9);
  for (const char* text : {"", "G", "200G", "BS_G", "BS_200", "BS_-200G", "BS_200 G", "unknown"})
    EXPECT_FALSE(parseSlingshotSpeed(text)) << text;
}

/// Two cabinets of four blades, with two routers each.
TEST(Cray, TheLinksOfGeminisAreATorus) {
  const Topology topology = golden("xe6.links");
  EXPECT_EQ(topology.hosts(), 32u);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 16u);
  const Level& torus = topology.level(2);
  EXPECT_EQ(torus.wiring, Wiring::torus);
  EXPECT_EQ(torus.dimensionsText(), "2x2x4");
  EXPECT_EQ(meet(topology, "nid00000", "nid00001"), 1);
  EXPECT_EQ(meet(topology, "nid00001", "nid00002"), 2) << "the other router of the blade";
  // In the order of the coordinates: z runs fastest.
  EXPECT_EQ(topology.hostNames()[2], "nid00004");
  EXPECT_EQ(topology.hostNames()[8], "nid00002");
  EXPECT_EQ(topology.hostNames()[16], "nid00016");
  // Four tiles of three lanes of 3.125 Gbit/s: y, by cable.
  ASSERT_TRUE(torus.linkBandwidth);
  EXPECT_DOUBLE_EQ(*torus.linkBandwidth, 4 * 3 * 3.125e9 / 8);
}

/// Two groups of two chassis of three blades.
TEST(Cray, TheLinksOfArieAreADragonfly) {
  const Topology topology = golden("xc30.links");
  EXPECT_EQ(topology.hosts(), 48u);
  ASSERT_EQ(topology.levels(), 5);
  const double electrical = 3 * 14e9 / 8, optical = 3 * 12.5e9 / 8;
  EXPECT_DOUBLE_EQ(*topology.uplink(1, 0), 2 * electrical + 3 * electrical + 2 * optical) << "of a blade";
  EXPECT_DOUBLE_EQ(*topology.uplink(2, 0), 3 * (3 * electrical + 2 * optical)) << "of a chassis";
  EXPECT_DOUBLE_EQ(*topology.uplink(3, 1), 12 * optical) << "of a group";
  EXPECT_DOUBLE_EQ(*topology.level(3).uplink, 12 * optical) << "which all have";
  EXPECT_EQ(topology.level(4).wiring, Wiring::allToAll);
  EXPECT_EQ(topology.level(4).links, 12u);
  EXPECT_DOUBLE_EQ(*topology.level(4).linkBandwidth, optical);
  EXPECT_EQ(meet(topology, "nid00000", "nid00047"), 4);
}

TEST(Cray, LinksThatCannotBeReadSayWhere) {
  const auto messageFor = [](const std::string& lines) {
    const std::string text = "n0 c0-0c0s0n0\nn1 c0-0c0s0n2\n" + lines + "\n";
    return messageOf([&] { sourceOfFile(text, "f").read(text, "f"); });
  };
  const std::string good = "c0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0g1l00[(0,1,0)] LinkType: mezzanine";
  EXPECT_EQ(messageFor(good), "no error");
  const std::pair<std::string, std::string> cases[] = {
      {"c0-0c0s0g0 Y+ -> c0-0c0s0g1", "f:3: \"c0-0c0s0g0\" is no line of rtr --interconnect"},
      {"c0-0c0s0g0l00[(0,0)] Y+ -> c", "is no line of rtr"},
      {"c0-0c0s0g0l00[(0,0,9999)] Y+ -> c", "is no line of rtr"},
      {"c0-0c0s0g0l00[(0,0,0)] Y+ ->", "is no line of rtr"},
      {"c0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0g1l00", "\"c0-0c0s0g1l00\" is no tile"},
      {"c0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0a0l00(0:1:0)", "is no tile of such a router"},
      {"c0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0g1l00[(0,1,0)]", "no direction or no kind"},
      {"c0-0c0s0g0l00[(0,0,0)] W+ -> c0-0c0s0g1l00[(0,1,0)] LinkType: cable", "no direction or no kind"},
      {"c0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0g1l00[(0,1,0)] LinkType: rope", "\"rope\" is no kind of link"},
      {"c0-0c0s0a0l00(0:0:0) red -> c0-0c0s1a0l00(0:0:1)", "\"red\" is no color"},
      {good + "\nc0-0c0s0g0l01[(0,0,1)] Y+ -> c0-0c0s0g1l01[(0,1,0)] LinkType: cable",
       "f:4: \"c0-0c0s0g0l01[(0,0,1)]\" was at"},
      {good + "\nc0-0c0s1a0l00(0:0:0) blue -> unused", "f:4: \"c0-0c0s1a0l00(0:0:0)\" is of another kind"},
      {"c0-0c0s9g0l00[(0,0,0)] Y+ -> c0-0c0s9g1l00[(0,1,0)] LinkType: cable",
       "the host n0 is at the router c0-0c0s0g0"},
      {good + "\nc0-0c0s0g0l02[(0,0,0)] Z+ -> c0-0c0s1g0l02[(0,0,1)] LinkType: backplane", "4 places, but 2 groups"},
      {good + "\nn2 x1000c0s0b0n0", "the host n2 has no cname"},
  };
  for (const auto& [lines, message] : cases) EXPECT_THAT(messageFor(lines), HasSubstr(message)) << lines;
  EXPECT_THAT(messageOf([&] { sourceOfFile(good, "f").read(good, "f"); }), HasSubstr("f: links alone name no hosts"));
}

}  // namespace
}  // namespace tacc::test
