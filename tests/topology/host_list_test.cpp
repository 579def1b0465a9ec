#include "topology/model/host_list.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "golden.hpp"
#include "topology/model/units.hpp"

namespace tacc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(HostList, ExpandsBrackets) {
  EXPECT_THAT(expandHosts("node[08-11]"), ElementsAre("node08", "node09", "node10", "node11"));
  EXPECT_THAT(expandHosts("a[9-10,12], b"), ElementsAre("a9", "a10", "a12", "b"));
  EXPECT_THAT(expandHosts("r[0-1]n[1-2]x"), ElementsAre("r0n1x", "r0n2x", "r1n1x", "r1n2x"));
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* list : {"", ",", "a,,b", "a[1-", "a]1[", "a[]", "a[1-x]", "a[2-1]", "a[-1]", "a b", "a\"b", "a[1-2",
                           "[[1]]", "a[99999999999999999999]", "a[1,]"}) {
    EXPECT_THROW(expandHosts(list), Error) << list;
  }
}

TEST(HostList, RefusesMoreThanFitsBeforeItExpands) {
  for (const char* list : {"a[0-999999999999]", "a[0-999999]b[0-999999]",
                           "a[0-9]b[0-9]c[0-9]d[0-9]e[0-9]f[0-9]g[0-9]h[0-9]", "a[0-1048576]"}) {
    EXPECT_THAT(messageOf([&] { expandHosts(list); }), HasSubstr("more than 1048576 hosts")) << list;
  }
  EXPECT_EQ(expandHosts("a[1-1048576]").size(), mostHosts);
  EXPECT_THROW(expandHosts("a[1-11]", 10), Error);
}

TEST(HostList, FoldsToTheShortest) {
  EXPECT_EQ(foldHosts(expandHosts("node[001-256],login1")), "node[001-256],login1");
  EXPECT_EQ(foldHosts(expandHosts("a[8-12]")), "a[8-12]");
  EXPECT_EQ(foldHosts(expandHosts("a[08-12,20]")), "a[08-12,20]");
  EXPECT_EQ(foldHosts(std::vector<std::string>{"x"}), "x");
  EXPECT_EQ(foldHosts({}), "");
}

TEST(HostList, FoldingIsUndoneByExpanding) {
  std::mt19937 random(1);
  const std::vector<std::string> heads = {"n", "node", "n1-", "", "c0-0c"}, tails = {"", "x", "-ib"};
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::string> names;
    const std::size_t count = 1 + random() % 12;
    std::size_t number = random() % 120;
    for (std::size_t i = 0; i < count; ++i) {
      number = random() % 3 == 0 ? random() % 1200 : number + 1;
      const std::string digits = random() % 4 == 0 ? fmt::format("{:03}", number) : std::to_string(number);
      names.push_back(heads[trial % heads.size()] + digits + tails[random() % 8 < 6 ? 0 : 1 + random() % 2]);
    }
    EXPECT_EQ(expandHosts(foldHosts(names)), names) << foldHosts(names);
  }
}

TEST(HostList, NaturalOrderIsTotal) {
  EXPECT_TRUE(naturallyLess("node2", "node10"));
  EXPECT_TRUE(naturallyLess("node9x", "node10"));
  EXPECT_TRUE(naturallyLess("a", "a1"));
  EXPECT_TRUE(naturallyLess("n01", "n1"));
  EXPECT_FALSE(naturallyLess("n1", "n01"));
  std::mt19937 random(2);
  std::vector<std::string> words;
  for (int i = 0; i < 120; ++i) {
    std::string word;
    for (std::size_t length = random() % 5; length > 0; --length) word += "0129a-"[random() % 6];
    words.push_back(word);
  }
  std::sort(words.begin(), words.end(), naturallyLess);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < words.size(); ++j) {
      if (i < j) {
        EXPECT_FALSE(naturallyLess(words[j], words[i])) << words[i] << ' ' << words[j];
      }
      EXPECT_EQ(!naturallyLess(words[i], words[j]) && !naturallyLess(words[j], words[i]), words[i] == words[j]);
    }
  }
}

TEST(HostList, MessagesAreShort) {
  EXPECT_EQ(someHosts(expandHosts("n[1-9]")), "n[1-9]");
  std::vector<std::string> odd;
  for (int i = 0; i < 1000; ++i) odd.push_back("host" + std::to_string(i * 7));
  EXPECT_LT(someHosts(odd).size(), 400u);
  EXPECT_THAT(someHosts(odd), HasSubstr(" more"));
}

TEST(Units, AreRead) {
  EXPECT_DOUBLE_EQ(parseLatency("1.5 us").value(), 1.5e-6);
  EXPECT_EQ(parseLatency("1.5 us").value(), 1.5e-6);  // the very number
  EXPECT_DOUBLE_EQ(parseLatency("3ms").value(), 3e-3);
  EXPECT_DOUBLE_EQ(parseBandwidth("12.5 GB/s").value(), 12.5e9);
  EXPECT_DOUBLE_EQ(parseBandwidth("100 Gbit/s").value(), 12.5e9);
  EXPECT_DOUBLE_EQ(parseBandwidth("1 GiB/s").value(), 1073741824.0);
  EXPECT_DOUBLE_EQ(parseBytes("32 MiB").value(), 33554432.0);
}

TEST(Units, RefuseWhatIsNotAboveZero) {
  for (const char* text : {"", "0 us", "-1 us", "1", "us", "1 h", "nan us", "inf s", "1e9 s", "1 us x", "1,5 us"}) {
    EXPECT_EQ(parseLatency(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "0 GB/s", "-1 GB/s", "1", "1 GB", "1 gb/s", "nan GB/s", "inf B/s", "1e30 GB/s", "0.1 B/s"}) {
    EXPECT_EQ(parseBandwidth(text), std::nullopt) << text;
  }
}

TEST(Units, AreWrittenSoThatTheyReadBackExactly) {
  EXPECT_EQ(formatLatency(1.5e-6), "1.5 us");
  EXPECT_EQ(formatBandwidth(12.5e9), "12.5 GB/s");
  EXPECT_EQ(formatBytes(33554432), "32 MiB");
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    const double magnitude = std::pow(10.0, static_cast<double>(random() % 1200) / 100.0);
    EXPECT_EQ(parseBandwidth(formatBandwidth(magnitude)), magnitude);
    EXPECT_EQ(parseLatency(formatLatency(magnitude * 1e-12)), magnitude * 1e-12);
  }
}

}  // namespace
}  // namespace tacc::test
