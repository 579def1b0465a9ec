// Omni-Path networks, as opareport tells them.
#include <gmock/gmock.h>

#include <string>

#include "golden.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

void replaceIn(std::string& text, const std::string& what, const std::string& by) {
  ASSERT_NE(text.find(what), std::string::npos) << what;
  text.replace(text.find(what), what.size(), by);
}

TEST(OmniPath, ReadsTheLinksOfOpareport) {
  const Topology topology = golden("edge.opareport");
  EXPECT_EQ(topology.hosts(), 19u);
  ASSERT_EQ(topology.levels(), 3);
  EXPECT_EQ(topology.groups(1), 4u);
  EXPECT_EQ(meet(topology, "cn001", "cn006"), 1);
  EXPECT_EQ(meet(topology, "cn006", "cn007"), 2);
  EXPECT_EQ(meet(topology, "login1", "cn007"), 2);
  EXPECT_EQ(topology.groupName(1, topology.groupOf(1, topology.find("cn007").value())), "edge2");
  EXPECT_EQ(topology.level(0).uplink, 12.5e9);
  EXPECT_EQ(topology.uplink(0, topology.find("login1").value()), 6.25e9);
  EXPECT_EQ(topology.level(1).uplink, 4 * 12.5e9);
  EXPECT_EQ(golden("edge.opareport.xml"), topology);
  std::string text = readText(goldenPath("edge.opareport"));
  replaceIn(text, "Link Summary", "Getting All Node Records...\nDone Getting All Node Records\nLink Summary");
  replaceIn(text, "edge2\n", "edge2\n    PassiveCu, 2m     Hitachi Metals   P/N IQSFP26C-20       Rev 02\n");
  EXPECT_EQ(readFabric(text), topology);
}

TEST(OmniPath, APartOfAReportIsRefused) {
  for (const char* file : {"edge.opareport", "edge.opareport.xml"}) {
    const std::string text = readText(goldenPath(file));
    const bool isXml = std::string(file).ends_with("xml");
    const std::size_t last = isXml ? text.rfind("</LinkSummary>") : text.rfind("SW"), step = isXml ? 7 : 1;
    for (std::size_t bytes = 0; bytes < last; bytes += step)
      EXPECT_THROW(topologySource("ibnet").read(text.substr(0, bytes), "part"), Error) << file << ' ' << bytes;
  }
}

TEST(OmniPath, BadReportsAreNamed) {
  const auto changed = [](const char* file, const std::string& what, const std::string& by) {
    std::string text = readText(goldenPath(file));
    replaceIn(text, what, by);
    return messageOf([&] { topologySource("ibnet").read(text, "net"); });
  };
  EXPECT_THAT(changed("edge.opareport", "31 Links", "32 Links"), HasSubstr("it has 31 links of the 32"));
  EXPECT_THAT(changed("edge.opareport", "31 Links", "31 FI Links"),
              HasSubstr("net:3: this list has a part of the links"));
  EXPECT_THAT(changed("edge.opareport", "<->  0x0011750102aa0000   1", "->  0x0011750102aa0000   1"),
              HasSubstr("net:7: the link before has one end only"));
  EXPECT_THAT(changed("edge.opareport", "0x0011750102aa0000   2 SW", "0x0011750102aa0000   1 SW"),
              HasSubstr("net:8: port 1 of 0x0011750102aa0000 has another cable already"));
  EXPECT_THAT(changed("edge.opareport", "  2 SW   edge1", "  2 FI   edge1"), HasSubstr("is FI and SW"));
  EXPECT_THAT(changed("edge.opareport", "0x0011750102aa0000   1 SW", "0x0011750102aa0000   x SW"),
              HasSubstr("net:6: "));
  EXPECT_THAT(changed("edge.opareport.xml", "<Port id=", "<Cable id="),
              HasSubstr("a link has 1 ends, but must have 2"));
  EXPECT_THAT(changed("edge.opareport.xml", ">FI<", ">HCA<"), HasSubstr("not \"HCA\""));
}

}  // namespace
}  // namespace tacc::test
