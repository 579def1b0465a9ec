// The inside of hosts as hwloc tells of it: machines drawn at random, and files of unusual ones.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/quiet_thread.hpp"
#include "golden.hpp"
#include "topology/sources/host_clues.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/isolated.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;
using testing::Not;

NodeDescription inside(const std::string& file) { return *golden(file).node(0); }

/// "cache 4*4": the groups of a level.
std::vector<std::string> levelsOf(const NodeDescription& node) {
  std::vector<std::string> levels;
  for (std::size_t i = 0; i < node.levels.size(); ++i)
    levels.push_back(
        fmt::format("{} {}", nameOf(node.levels[i].kind), formatSizes(node.nesting, static_cast<int>(i) + 1)));
  return levels;
}

/// Every core is in one group of every level, groups are cut by none of a lower level, every thread belongs to one
/// core.
void expectWhole(const NodeDescription& node, const std::string& what) {
  const auto cores = static_cast<std::uint32_t>(node.cores.size());
  ASSERT_EQ(node.nesting.leaves(), cores) << what;
  ASSERT_EQ(static_cast<std::size_t>(node.nesting.levels()), node.levels.size() + 1) << what;
  for (int level = 1; level < node.nesting.levels(); ++level) {
    std::vector<int> times(cores);
    std::map<std::uint32_t, std::uint32_t> above;  // of the groups of the level below
    for (std::uint32_t g = 0; g < node.nesting.groups(level); ++g) {
      const LeafRange range = node.nesting.leavesOf(level, g);
      for (std::uint32_t core = range.first; core < range.last; ++core) {
        ++times[core];
        EXPECT_EQ(node.nesting.groupOf(level, core), g) << what;
        const std::uint32_t lower = node.nesting.groupOf(level - 1, core);
        EXPECT_EQ(above.try_emplace(lower, g).first->second, g) << what << ": level " << level << " is not nested";
      }
    }
    EXPECT_EQ(times, std::vector<int>(cores, 1)) << what << ": level " << level;
  }
  std::set<std::uint32_t> threads;
  for (std::uint32_t core = 0; core < cores; ++core) {
    EXPECT_FALSE(node.cores[core].empty()) << what;
    for (const std::uint32_t cpu : node.cores[core]) {
      EXPECT_TRUE(threads.insert(cpu).second) << what << ": thread " << cpu << " twice";
      EXPECT_EQ(node.coreOf(cpu), core) << what;
    }
  }
}

struct Tier {
  std::string word;
  std::uint32_t count;  // in each of the tier above
};

/// A machine in hwloc's words, from the outside; any tier but cores may be missing.
struct DrawnMachine {
  std::vector<Tier> tiers;
  std::uint32_t threads = 1;

  explicit DrawnMachine(std::mt19937& random) {
    const auto draw = [&](std::uint32_t least, std::uint32_t most) {
      return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
    };
    std::vector<std::string> words = {"pack", "die", "numa", "l3", "l2"};
    if (draw(0, 3) == 0) std::swap(words[1], words[2]);  // memory of a whole package, dies inside
    if (draw(0, 3) == 0) std::swap(words[2], words[3]);  // a cache for several NUMA nodes
    for (const std::string& word : words)
      if (draw(0, 2) > 0) tiers.push_back({word, draw(1, 3)});
    tiers.push_back({"core", draw(1, 4)});
    threads = draw(1, 3);
  }

  std::string words() const {
    std::string text;
    for (const Tier& tier : tiers) text += fmt::format("{}:{} ", tier.word, tier.count);
    return text + fmt::format("pu:{}", threads);
  }
  /// How many there are of a tier in the whole machine; 0 if it is missing.
  std::uint32_t all(const std::string& word) const {
    std::uint32_t product = 1;
    for (const Tier& tier : tiers) {
      product *= tier.count;
      if (tier.word == word) return product;
    }
    return 0;
  }
};

TEST(Hwloc, DrawnMachinesComeOutAsTheyWereDrawn) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const char* wanted = std::getenv("TACC_TEST_MACHINES");
  std::mt19937 random(24);
  for (int i = 0; i < (wanted == nullptr ? 300 : std::atoi(wanted)); ++i) {
    const DrawnMachine drawn(random);
    const std::string words = drawn.words();
    const NodeDescription node = nodeFromSynthetic(words, "drawn");
    expectWhole(node, words);
    const std::uint32_t cores = drawn.all("core");
    ASSERT_EQ(node.cores.size(), cores) << words;
    for (const auto& core : node.cores) EXPECT_EQ(core.size(), drawn.threads) << words;
    std::map<LevelKind, std::uint32_t> expected;
    if (drawn.all("pack") > 0) expected[LevelKind::socket] = drawn.all("pack");
    expected[LevelKind::numa] = std::max(drawn.all("numa"), 1u);  // hwloc makes one of all memory
    // The shared cache is the third, or the second where there is no third that several cores share.
    const std::uint32_t l3 = drawn.all("l3"), l2 = drawn.all("l2");
    if (const std::uint32_t shared = l3 > 0 && l3 < cores ? l3 : l2 < cores ? l2 : 0; shared > 0)
      expected[LevelKind::cache] = shared;
    if (const std::uint32_t dies = drawn.all("die"); dies > 0) {
      const bool isKnown = std::ranges::any_of(expected, [&](const auto& other) { return other.second == dies; });
      if (!isKnown) expected[LevelKind::die] = dies;
    }
    std::map<LevelKind, std::uint32_t> found;
    for (std::size_t l = 0; l < node.levels.size(); ++l) {
      const int level = static_cast<int>(l) + 1;
      found[node.levels[l].kind] = node.nesting.groups(level);
      for (std::uint32_t g = 0; g < node.nesting.groups(level); ++g)
        EXPECT_EQ(node.nesting.leavesOf(level, g).size(), cores / node.nesting.groups(level)) << words;
    }
    EXPECT_EQ(found, expected) << words;
    const Topology host = topologySource("hwloc").read(words, "drawn.txt");
    EXPECT_EQ(topologyFromToml(topologyToToml(host), "saved"), host) << words;
    if (HasFailure()) return;
  }
}

TEST(Hwloc, MachinesWithoutPackagesHaveNoSockets) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const NodeDescription node = nodeFromSynthetic("numa:2 core:4 pu:1", "w");
  EXPECT_THAT(levelsOf(node), testing::ElementsAre("numa 2*4"));
  EXPECT_EQ(node.summary(), "2 numa, 8 cores, 8 threads");
  EXPECT_EQ(nodeFromSynthetic("pu:6", "w").summary(), "1 numa, 6 cores, 6 threads");
}

TEST(Hwloc, MemoryBesideThatOfTheCoresMakesNoGroups) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  // HBM beside DRAM, and memory that hangs at the whole machine.
  EXPECT_THAT(levelsOf(nodeFromSynthetic("pack:2 [numa] [numa] core:4 pu:1", "w")),
              testing::ElementsAre("numa 2*4", "socket 2*4"));
  EXPECT_THAT(levelsOf(nodeFromSynthetic("[numa] pack:2 [numa] core:4 pu:1", "w")),
              testing::ElementsAre("numa 2*4", "socket 2*4"));
  EXPECT_THAT(levelsOf(inside("cxl.hwloc.xml")), testing::ElementsAre("numa 2*4", "socket 2*4"));
}

TEST(Hwloc, AnArmBoardHasClustersAndACoreThatIsOffline) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const NodeDescription node = inside("arm_board.hwloc.xml");
  expectWhole(node, "board");
  EXPECT_THAT(levelsOf(node), testing::ElementsAre("cache 4,3", "numa 7"));
  EXPECT_EQ(formatCpus(node.cores), "0-4,6-7");
}

/// Packages 1 and 3 have memory that the container may not use: their cores are together all the same.
TEST(Hwloc, AContainerSeesCoresWithoutTheirMemory) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const NodeDescription node = inside("container.hwloc.xml");
  expectWhole(node, "container");
  EXPECT_THAT(levelsOf(node), testing::ElementsAre("numa 3,4,3,4", "socket 3,4,3,4"));
  EXPECT_EQ(formatCpus(node.cores), "1-8,10-15");
}

TEST(Hwloc, ReadsWhatVersionThreeWrites) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const Topology host = golden("dies_hbm.hwloc3.xml");
  EXPECT_EQ(host.host(0), "spr7");
  const NodeDescription& node = *host.node(0);
  expectWhole(node, "version 3");
  EXPECT_THAT(levelsOf(node), testing::ElementsAre("cache 8*2", "die 4*4", "numa 2*8", "socket 2*8"));
  EXPECT_EQ(node.summary(), "2 sockets, 2 numa, 4 dies, 8 caches of 32 MiB, 16 cores, 32 threads");
  EXPECT_EQ(formatCpus(node.cores), "0-15+16-31");
  // It is the number alone that version 2 refuses.
  std::string text = readText(goldenPath("dies_hbm.hwloc3.xml"));
  text.replace(text.find("\"3.0\""), 5, "\"2.0\"");
  EXPECT_EQ(nodeFromXml(text, "as version 2"), node);
  text.replace(text.find("\"2.0\""), 5, "\"3.1\"");
  EXPECT_EQ(nodeFromXml(text, "as version 3.1"), node);
}

TEST(Hwloc, SaysHowToExportWhatItCannotRead) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const std::string whole = readText(goldenPath("dies_hbm.hwloc3.xml"));
  const auto error = [](const std::string& text) { return messageOf([&] { nodeFromXml(text, "new.xml"); }); };
  EXPECT_THAT(error(whole.substr(0, 4000)), HasSubstr("new.xml: hwloc 3 wrote this XML"));
  EXPECT_THAT(error(whole.substr(0, 4000)), HasSubstr("lstopo --export-xml-flags v2 FILE.xml"));
  std::string later = whole;
  later.replace(later.find("\"3.0\""), 5, "\"4.0\"");
  EXPECT_THAT(error(later), HasSubstr("new.xml: hwloc 4 wrote this XML"));
  const std::string older = readText(goldenPath("arm_board.hwloc.xml"));
  EXPECT_THAT(error(older.substr(0, 2000)), HasSubstr("new.xml: hwloc cannot read this XML"));
  EXPECT_THAT(error(older.substr(0, 2000)), Not(HasSubstr("v2")));
}

TEST(Hwloc, CluesTellOfDies) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  HostClues clues;
  clues.host = "a";
  clues.node = inside("dies_hbm.hwloc3.xml");
  EXPECT_EQ(cluesFromText(cluesToText(clues)), clues);
}

/// A communicator may join in a thread that takes no signals.
TEST(Isolated, WorkThatWaitsEndsWhateverTheThreadBlocks) {
  const BlockedSignals blocked;
  const auto wait = [] {
    ::pause();
    return std::string();
  };
  EXPECT_THROW(runIsolated(wait, "a file"), Error);
}

}  // namespace
}  // namespace tacc::test
