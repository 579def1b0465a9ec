// Tuning files: what is saved loads again, what does not fit is refused with both values, and damage is an error.
#include "selection/tuning/tuning.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "algorithms/registry.hpp"
#include "core/error.hpp"
#include "core/text_file.hpp"
#include "selection/network_selector.hpp"
#include "selection/tuning/tuning_file.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;

Tuning sample() {
  Tuning tuning;
  tuning.place = {ownVersion(), "tcp", 0x0123456789abcdef, false, std::vector<int>(8, 2), {60.5e-6, 23.5e6}};
  tuning.add(Collective::allReduce, {1 << 20, "ring", 86e-3, "double_tree", 88e-3, "ring", 86e-3});
  tuning.add(Collective::allReduce, {8, "knomial_4", 200e-6, "binomial", 205.25e-6, "recursive_doubling", 300e-6});
  tuning.add(Collective::allReduce, {8192, "double_tree", 870e-6, "ring", 1.1e-3, "ring", 1.1e-3});
  tuning.add(Collective::allToAll, {64, "oneshot", 5e-4, "", 0, "oneshot", 5e-4});
  tuning.add(Collective::allGather, {64, "circulant", 5e-4, "", 0, "", 0});
  return tuning;
}

/// With `from` replaced once.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = tuningToToml(sample());
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string errorOf(const std::string& text) {
  try {
    (void)tuningFromToml(text, "t.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(TuningFile, WhatIsSavedLoadsAgain) {
  const Tuning tuning = sample();
  const std::string text = tuningToToml(tuning);
  const Tuning again = tuningFromToml(text, "t.toml");
  EXPECT_EQ(tuningToToml(again), text);
  EXPECT_EQ(differenceOf(tuning.place, again.place), "");
  EXPECT_EQ(again.place.ranksOfHost, tuning.place.ranksOfHost);
  EXPECT_EQ(again.origin, "t.toml");
  ASSERT_EQ(again.collectives.size(), 3u);
  const TunedSize& size = again.collectives[0].sizes[0];
  EXPECT_EQ(size.bytes, 8u);
  EXPECT_EQ(size.algorithm, "knomial_4");
  EXPECT_DOUBLE_EQ(size.seconds, 200e-6);
  EXPECT_EQ(size.next, "binomial");
  EXPECT_DOUBLE_EQ(size.nextSeconds, 205.25e-6);
  EXPECT_EQ(size.untuned, "recursive_doubling");
  EXPECT_EQ(size.line, 16);
}

TEST(TuningFile, HostsWithUnequalRanksAreKept) {
  Tuning tuning = sample();
  tuning.place.ranksOfHost = {1, 2, 3};
  EXPECT_EQ(tuningFromToml(tuningToToml(tuning), "t").place.ranksOfHost, (std::vector<int>{1, 2, 3}));
}

TEST(TuningFile, ErrorsSayWhereAndWhatWouldBeRight) {
  EXPECT_THAT(errorOf("a = "), HasSubstr("t.toml:1:"));
  EXPECT_THAT(errorOf(""), HasSubstr("format is missing"));
  EXPECT_THAT(errorOf(changed("format = 1", "format = 2")),
              HasSubstr("t.toml:3:10, format is 2, but this library knows"));
  EXPECT_THAT(errorOf(changed("version = \"", "versoin = \"")), HasSubstr("version is missing"));
  EXPECT_THAT(errorOf(changed("version = \"", "versio = 1\nversion = \"")), HasSubstr("did you mean version?"));
  EXPECT_THAT(errorOf(changed("[place]", "[palce]")), HasSubstr("[place] is missing"));
  EXPECT_THAT(errorOf(changed("\"tcp\"", "7")), HasSubstr("t.toml:7:13, [place] transport must be text"));
  EXPECT_THAT(errorOf(changed("abcdef\"", "abcde\"")), HasSubstr("sixteen hexadecimal digits"));
  EXPECT_THAT(errorOf(changed("[2]", "[2, 2]")),
              HasSubstr("has 2 numbers; it must have one for all hosts, or one for each of the 8"));
  EXPECT_THAT(errorOf(changed("hosts = 8", "hosts = 0")), HasSubstr("must be a whole number from 1"));
  EXPECT_THAT(errorOf(changed("23.500", "-1")), HasSubstr("[place] megabytes_per_second must be a number from 0"));
  EXPECT_THAT(errorOf(changed("[allreduce]", "[allreduced]")), HasSubstr("did you mean allreduce?"));
  EXPECT_THAT(errorOf(changed("bytes = 8192", "bytes = 8")),
              HasSubstr("t.toml:17, [allreduce] sizes: bytes = 8 follows 8; they must ascend"));
  EXPECT_THAT(errorOf(changed("us = 200.00", "us = \"fast\"")),
              HasSubstr("t.toml:16:46, [allreduce] sizes us must be a number"));
  EXPECT_THAT(errorOf(changed("us = 200.00, ", "")), HasSubstr("us is missing"));
  EXPECT_THAT(errorOf(changed("\"knomial_4\"", "\"knomail_4\"")), HasSubstr("did you mean knomial_4?"));
  EXPECT_THAT(errorOf(changed("\"knomial_4\"", "\"chain\"")),
              HasSubstr("does not serve allreduce of 16 ranks on 8 hosts; these do: "));
  EXPECT_THAT(errorOf(changed("\"knomial_4\"", "\"eager\"")), HasSubstr("no algorithm"));
  EXPECT_THAT(errorOf(changed("next_us", "nex_us")), HasSubstr("did you mean next_us?"));
}

TEST(Tuning, TheNearestSizeByRatioIsFound) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    Tuning tuning;
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 6; ++i) {
      sizes.push_back((std::size_t{1} << (random() % 30)) + random() % 7);
      tuning.add(Collective::broadcast, {sizes.back(), "ring", 1, "", 0, "", 0});
    }
    const auto [least, most] = std::ranges::minmax(sizes);
    for (int i = 0; i < 50; ++i) {
      const std::size_t bytes = (std::size_t{1} << (random() % 33)) + random() % 5;
      const TunedSize* found = tuning.find(Collective::broadcast, bytes);
      const bool isFar = bytes < least / 2 || bytes / 2 > most;
      ASSERT_EQ(found == nullptr, isFar) << bytes << " of " << least << " to " << most;
      if (isFar) continue;
      const auto distance = [&](std::size_t size) {
        return std::fabs(std::log(static_cast<double>(size)) - std::log(static_cast<double>(bytes)));
      };
      for (const std::size_t size : sizes) EXPECT_LE(distance(found->bytes), distance(size) + 1e-9);
    }
    EXPECT_EQ(tuning.find(Collective::reduce, least), nullptr);
  }
}

TEST(Tuning, MeasurementsAreKeptInOrderAndReplaced) {
  Tuning tuning = sample();
  tuning.add(Collective::allReduce, {8192, "ring", 1e-3, "", 0, "", 0});
  const auto& sizes = tuning.collectives[0].sizes;
  ASSERT_EQ(sizes.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(sizes, {}, &TunedSize::bytes));
  EXPECT_EQ(sizes[1].algorithm, "ring");
}

TEST(Tuning, WhatDiffersIsNamedWithBothValues) {
  const TuningPlace here = sample().place;
  EXPECT_EQ(differenceOf(here, here), "");
  const auto of = [&](const std::function<void(TuningPlace&)>& change) {
    TuningPlace other = here;
    change(other);
    return differenceOf(other, here);
  };
  EXPECT_EQ(of([](TuningPlace& p) { p.version = "0.0.9"; }),
            "it was measured with tacc 0.0.9, and this is " + ownVersion());
  EXPECT_THAT(of([](TuningPlace& p) { p.transport = "ucx"; }), testing::AllOf(HasSubstr("ucx"), HasSubstr("tcp")));
  EXPECT_THAT(of([](TuningPlace& p) {
                p.ranksOfHost = {3, 2};
              }),
              testing::AllOf(HasSubstr("2 hosts with 3, 2 ranks"), HasSubstr("8 hosts with 2 ranks each")));
  EXPECT_THAT(of([](TuningPlace& p) { p.topology = 0xfe; }),
              testing::AllOf(HasSubstr("00000000000000fe"), HasSubstr("0123456789abcdef")));
  EXPECT_THAT(of([](TuningPlace& p) { p.isMeasured = true; }),
              testing::AllOf(HasSubstr("by measuring"), HasSubstr("0123456789abcdef")));
  EXPECT_THAT(of([](TuningPlace& p) { p.speed.bytesPerSecond = 2.5e9; }),
              testing::AllOf(HasSubstr("2500 MB/s"), HasSubstr("23.5 MB/s")));
  EXPECT_EQ(of([](TuningPlace& p) { p.speed = {1e-6, 40e6}; }), "") << "what is measured at joining is rough";
}

TEST(Tuning, TheLayoutHasNoNamesAndNoFigures) {
  const auto digest = [](const std::string& hosts, const char* figures) {
    const Topology topology =
        topologyFromToml("hosts = \"" + hosts + "\"\n[[level]]\nrule = \"position / 2\"\n" + figures, "t");
    std::vector<int> ones(topology.hosts(), 1);
    return layoutDigest(costMachineOf(topology, topology.hostNames(), ones, {1e-6, 1e9}));
  };
  EXPECT_EQ(digest("a[1-4]", ""), digest("node[7-10]", "latency = \"5 us\"\n"));
  EXPECT_NE(digest("a[1-4]", ""), digest("a[1-6]", ""));
  const Topology topology = topologyFromToml("hosts = \"a[1-4]\"\n[[level]]\nrule = \"position / 2\"\n", "t");
  const auto of = [&](const std::vector<std::string>& names) {
    return layoutDigest(costMachineOf(topology, names, std::vector<int>(names.size(), 1), {1e-6, 1e9}));
  };
  EXPECT_NE(of({"a1", "a2", "a3"}), of({"a1", "a3", "a4"}));
  EXPECT_NE(of({"a1", "a2", "a3"}), of({"x", "y", "z"}));
}

TEST(TuningFile, ExamplesLoad) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TACC_TEST_EXAMPLES)) {
    const std::string path = entry.path();
    EXPECT_FALSE(tuningFromToml(readText(path), path).collectives.empty());
    ++examples;
  }
  EXPECT_GT(examples, 0);
}

/// Every damaged file loads as something that can be used, or is an Error.
TEST(TuningFile, DamageIsAnErrorOrHarmless) {
  const std::string whole = tuningToToml(sample());
  const std::vector<std::string> spices = {"[",
                                           "]",
                                           "{",
                                           "}",
                                           "\"",
                                           "=",
                                           ",",
                                           "-1",
                                           "1e400",
                                           "nan",
                                           "\n",
                                           "\xff",
                                           "99999999999999999999",
                                           "[place]\n",
                                           "sizes = ",
                                           std::string(1, '\0')};
  std::mt19937_64 random(11);
  int loaded = 0, refused = 0;
  const int rounds = std::getenv("TACC_TEST_QUICK") != nullptr ? 500 : 5000;
  for (int round = 0; round < rounds; ++round) {
    std::string text = whole;
    for (std::size_t times = 1 + random() % 3; times > 0; --times) {
      const std::size_t place = text.empty() ? 0 : random() % text.size();
      switch (random() % 5) {
        case 0:
          text.insert(place, spices[random() % spices.size()]);
          break;
        case 1:
          text.erase(place, random() % 30);
          break;
        case 2:
          if (!text.empty()) text[place] = static_cast<char>(random());
          break;
        case 3:
          text.insert(place, text.substr(text.size() / 2, random() % 100));
          break;
        default:
          text = text.substr(0, place);
      }
    }
    try {
      const Tuning tuning = tuningFromToml(text, "t.toml");
      ++loaded;
      for (const TunedCollective& measured : tuning.collectives)
        for (const TunedSize& size : measured.sizes) {
          EXPECT_TRUE(findAlgorithm(size.algorithm) != nullptr || size.algorithm == eagerRoute);
          EXPECT_EQ(tuning.find(measured.collective, size.bytes), &size);
        }
      EXPECT_NO_THROW((void)tuningFromToml(tuningToToml(tuning), "again")) << text;
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("t.toml"));
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tacc
