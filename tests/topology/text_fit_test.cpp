// Words in pictures: how wide they are, and how they are made to fit.
#include "tacc_topo/text_fit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "picture.hpp"
#include "topology/model/host_list.hpp"

namespace tacc::test {
namespace {

TEST(TextFit, MeasuresAtLeastWhatCommonFontsNeed) {
  // Advance widths of Helvetica and of DejaVu Sans, in thousandths.
  const std::vector<std::pair<char, std::pair<double, double>>> widths = {
      {'0', {556, 637}}, {'m', {833, 975}},   {'C', {722, 699}}, {'i', {222, 278}},
      {'W', {944, 989}}, {'@', {1015, 1000}}, {'-', {333, 361}}};
  for (const auto& [letter, both] : widths) {
    EXPECT_GE(textWidth(std::string(1, letter), 1000), std::max(both.first, both.second)) << letter;
    EXPECT_LE(textWidth(std::string(1, letter), 1000), std::max(both.first, both.second) + 1) << letter;
  }
  EXPECT_DOUBLE_EQ(textWidth("00", 10), 2 * textWidth("0", 10));
  EXPECT_GT(textWidth("漢", 10), 9);
}

TEST(TextFit, ShortensInTheMiddleAndNeverBeyondItsRoom) {
  EXPECT_EQ(shortened("node001", 200, 12), "node001");
  EXPECT_EQ(shortened("", 0, 12), "");
  for (const std::string text :
       {"a-very-long-name-of-a-host-0042", "größer äöü ßßß 漢字漢字漢字", "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"}) {
    for (double room = 0; room < 250; room += 3) {
      const std::string fitting = shortened(text, room, 12);
      EXPECT_LE(textWidth(fitting, 12), room);
      EXPECT_NO_THROW(readXml("<a>" + fitting + "</a>"));  // no letter is cut
      if (room > 60) {
        EXPECT_EQ(fitting.front(), text.front());
        EXPECT_EQ(fitting.back(), text.back());
      }
    }
  }
}

TEST(TextFit, FoldsHosts) {
  std::vector<std::string> names = expandHosts("node[001-064]");
  EXPECT_EQ(hostsFor(names, 200, 12), "node[001-064]");
  EXPECT_EQ(hostsFor(expandHosts("a7,z[1-9],c4"), 60, 12), "a7 … c4");
  const std::string ends = hostsFor(names, 70, 10);
  EXPECT_THAT(ends, testing::MatchesRegex("n.* … n.*4"));
  EXPECT_LE(textWidth(ends, 10), 70);
  EXPECT_EQ(hostsFor({}, 80, 10), "");
}

TEST(TextFit, WritesFiguresForPeople) {
  EXPECT_EQ(shortSpeed(31.25e6), "31.25 MB/s");
  EXPECT_EQ(shortSpeed(6.25e12), "6.25 TB/s");
  EXPECT_EQ(shortSpeed(1.23456789e9), "1.235 GB/s");
  EXPECT_EQ(shortSpeed(999.9999e6), "1 GB/s");
  EXPECT_EQ(shortSpeed(12), "12 B/s");
  EXPECT_EQ(shortLatency(1.5e-6), "1.5 us");
  EXPECT_EQ(shortLatency(90e-9), "90 ns");
  EXPECT_EQ(counted(40960, "host"), "40,960 hosts");
  EXPECT_EQ(counted(1, "switch"), "1 switch");
  EXPECT_EQ(counted(2, "leaf switch"), "2 leaf switches");
  EXPECT_EQ(counted(6, "chassis"), "6 chassis");
  EXPECT_EQ(counted(2, "2 blocks"), "2 x 2 blocks");
}

}  // namespace
}  // namespace tacc::test
