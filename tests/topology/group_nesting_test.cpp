// Trees of groups, drawn: what parents, parts and levels of them must hold.
#include "topology/probe/group_nesting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

namespace tacc {
namespace {

/// Cuts the hosts of `group` in two again and again, and keeps some of the halves.
void drawInside(HostSet group, std::mt19937& random, std::vector<HostSet>& groups) {
  if (std::popcount(group) < 4) return;
  HostSet half = 0;
  for (HostSet left = group; left != 0; left &= left - 1)
    if (random() % 2 == 0) half |= left & ~(left - 1);
  for (const HostSet part : {half, group & ~half}) {
    if (std::popcount(part) < 2 || part == group) continue;
    if (random() % 4 != 0) groups.push_back(part);
    drawInside(part, random, groups);
  }
}

class GroupNesting : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::mt19937 random_{GetParam()};
  std::uint32_t hosts_ = 2 + GetParam() * 7 % 63;
  HostSet all_ = hosts_ == mostSetHosts ? ~HostSet{0} : setOf(hosts_) - 1;
  std::vector<HostSet> groups_ = [this] {
    std::vector<HostSet> groups;
    drawInside(all_, random_, groups);
    std::ranges::shuffle(groups, random_);
    return groups;
  }();
};

TEST_P(GroupNesting, PartsMakeUpTheGroupAndHaveItAsTheirParent) {
  std::vector<HostSet> nodes = groups_;
  nodes.push_back(all_);
  for (const HostSet group : nodes) {
    HostSet together = 0;
    int highest = 0;
    for (const HostSet part : partsOf(groups_, group)) {
      EXPECT_EQ(together & part, 0U) << "a host in two parts";
      together |= part;
      if (std::popcount(part) == 1) continue;
      EXPECT_EQ(parentOf(groups_, all_, part), group);
      highest = std::max(highest, heightOf(groups_, part));
    }
    EXPECT_EQ(together, group);
    EXPECT_EQ(heightOf(groups_, group), highest + 1);
  }
}

TEST_P(GroupNesting, LevelsAreNestedAndHaveEveryGroup) {
  const std::vector<std::vector<std::uint32_t>> levels = levelsOf(hosts_, groups_);
  const auto groupIn = [&](std::size_t level, std::uint32_t host) {
    HostSet together = 0;
    for (std::uint32_t other = 0; other < hosts_; ++other)
      if (levels[level][other] == levels[level][host]) together |= setOf(other);
    return together;
  };
  for (const HostSet group : groups_) {
    bool isThere = false;
    for (std::size_t level = 0; level < levels.size(); ++level)
      isThere = isThere || groupIn(level, static_cast<std::uint32_t>(std::countr_zero(group))) == group;
    EXPECT_TRUE(isThere) << std::hex << group;
  }
  for (std::size_t level = 1; level < levels.size(); ++level)
    for (std::uint32_t host = 0; host < hosts_; ++host)
      EXPECT_EQ(groupIn(level - 1, host) & ~groupIn(level, host), 0U) << "a level that cuts through the one below";
}

TEST_P(GroupNesting, OverlapIsNeitherNestedNorApart) {
  for (const HostSet a : groups_)
    for (const HostSet b : groups_) EXPECT_TRUE(isNestedOrApart(a, b));
  EXPECT_FALSE(isNestedOrApart(0b011, 0b110));
}

INSTANTIATE_TEST_SUITE_P(Drawn, GroupNesting, testing::Range(1U, 60U));

}  // namespace
}  // namespace tacc
