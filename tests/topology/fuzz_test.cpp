// Golden files with damage: each must load or be an Error, in bounded time and memory, never end the process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "fabric_text.hpp"
#include "golden.hpp"
#include "topology/model/compare.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

/// One to four mutations: bytes, lines, numbers and pieces from elsewhere in the file.
std::string damage(std::string text, std::mt19937& random) {
  static const std::vector<std::string> spices = {"[0-999999999999]",
                                                  "[",
                                                  "]",
                                                  "\"",
                                                  "=",
                                                  "999999999999",
                                                  "-1",
                                                  "0",
                                                  "\n",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  "a[0-99999]b[0-99999]",
                                                  "SwitchName=",
                                                  "{",
                                                  ":",
                                                  "&",
                                                  "*",
                                                  "  ",
                                                  "[[level]]\n",
                                                  "<",
                                                  "/>",
                                                  "#",
                                                  "\t",
                                                  ","};
  const auto position = [&] { return text.empty() ? 0 : random() % text.size(); };
  for (unsigned times = 1 + random() % 4; times > 0; --times) {
    switch (random() % 7) {
      case 0:
        text = text.substr(0, position());
        break;
      case 1:
        if (!text.empty()) text[position()] = static_cast<char>(random());
        break;
      case 2:
        text.insert(position(), spices[random() % spices.size()]);
        break;
      case 3: {  // a line twice, or away
        const std::size_t begin = text.rfind('\n', position());
        const std::size_t from = begin == std::string::npos ? 0 : begin;
        const std::size_t end = std::min(text.find('\n', from + 1), text.size());
        if (random() % 2 == 0)
          text.insert(from, text.substr(from, end - from));
        else
          text.erase(from, end - from);
        break;
      }
      case 4:
        text.erase(position(), random() % 20);
        break;
      case 5:
        text.insert(position(), text.substr(position(), random() % 200));
        break;
      default: {
        const std::size_t digit = text.find_first_of("0123456789", position());
        if (digit != std::string::npos) text.replace(digit, 1, std::to_string(random()));
      }
    }
  }
  return text;
}

int rounds(int full) { return std::getenv("TACC_TEST_QUICK") != nullptr ? full / 10 : full; }

/// What loads must be a whole topology.
void exercise(const std::string& text, const std::function<Topology(const std::string&)>& load, int& loaded) {
  try {
    const Topology topology = load(text);
    ++loaded;
    (void)topology.digest();
    if (topology.hosts() < 5000) {
      (void)treeText(topology);
      const std::string toml = topologyToToml(topology);
      for (const std::string& difference :
           differences(topology, topologyFromToml(toml, "again"), "it", "what was saved")) {
        ADD_FAILURE() << difference << "\n" << toml;
      }
    }
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

void fuzzText(const std::string& text, const std::string& name, int full) {
  const TopologySource& source = sourceOfFile(text, name);
  std::mt19937 random(7);
  int loaded = 0;
  const int times = rounds(full);
  for (int i = 0; i < times; ++i) {
    exercise(
        damage(text, random), [&](const std::string& broken) { return source.read(broken, name); }, loaded);
  }
  EXPECT_GT(loaded, 0) << "all damage was refused: the test sees only one side";
  EXPECT_LT(loaded, times) << "no damage was refused";
}

void fuzz(const std::string& name, int full) { fuzzText(readText(goldenPath(name)), name, full); }

TEST(Damage, SlurmTree) { fuzz("tree.topology.conf", 4000); }
TEST(Damage, SlurmRails) { fuzz("rails.topology.conf", 4000); }
TEST(Damage, SlurmBlocks) { fuzz("block.topology.conf", 4000); }
TEST(Damage, SlurmMeshedTree) { fuzz("meshed.topology.conf", 4000); }
TEST(Damage, SlurmPrinted) {
  fuzz("printed_tree.topology.txt", 3000);
  fuzz("printed_blocks.topology.txt", 3000);
}
TEST(Damage, SlurmYaml) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  fuzz("topology.yaml", 4000);
  fuzz("torus.topology.yaml", 4000);
}

/// Includes must not read what never ends, nor without end.
TEST(Damage, SlurmIncludes) {
  const std::string lines = "SwitchName=a Nodes=n[1-2]\n#Include %c/x.conf\nSwitchName=b Nodes=n[3-4] # Include\n";
  std::mt19937 random(12);
  int loaded = 0;
  const int times = rounds(2000);
  for (int i = 0; i < times; ++i) {
    exercise(
        damage(lines, random),
        [](const std::string& broken) { return topologyFromSlurmConf(broken, "/nonexistent/t.conf"); }, loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, times);
  for (const char* file : {"/dev/zero", "/dev/stdin", "/proc/self/fd", "/"})
    EXPECT_THROW(topologyFromSlurmConf(fmt::format("Include {}\n", file), "t"), Error) << file;
}

/// Each host's address is made of others' pieces.
TEST(Damage, SlurmAddresses) {
  std::mt19937 random(13);
  int loaded = 0;
  const int times = rounds(4000);
  for (int i = 0; i < times; ++i) {
    const bool isTorus = random() % 3 == 0;
    std::vector<HostClues> hosts(2 + random() % 6);
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      hosts[h].host = fmt::format("n{}", h);
      hosts[h].slurmPattern = isTorus ? "torus:x:y:z.node" : "switch.switch.node";
      hosts[h].slurmAddress = isTorus ? fmt::format("p:{}:{}:0.n{}", random() % 2, random() % 3, h)
                                      : fmt::format("s[0-{}].l{}.n{}", random() % 3, random() % 4, h);
      if (random() % 20 == 0) hosts[h].slurmAddress = damage(hosts[h].slurmAddress, random);
      if (random() % 40 == 0) hosts[h].slurmPattern = damage(hosts[h].slurmPattern, random);
    }
    exercise(
        "", [&](const std::string&) { return topologyFromSlurmAddresses(hosts); }, loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, times);
}
TEST(Damage, Ibnetdiscover) { fuzz("three_levels.ibnetdiscover", 3000); }
TEST(Damage, NetworksForIbsim) { fuzz("fat_tree.ibsim", 3000); }
TEST(Damage, IbnetdiscoverWithRails) {
  fuzzText(FabricText::railOptimised(2, 4, 2, 2,
                                     [](int host, int card) {
                                       return host % 3 == 0 ? "MT4129 ConnectX7   Mellanox Technologies"
                                                            : fmt::format("n{} mlx5_{}", host, card);
                                     })
               .text(),
           "rails", 2000);
}
TEST(Damage, Opareport) { fuzz("edge.opareport", 3000); }
TEST(Damage, OpareportXml) { fuzz("edge.opareport.xml", 3000); }
TEST(Damage, CrayCnames) { fuzz("xc40.hosts", 2000); }
TEST(Damage, CrayXnames) { fuzz("ex.hosts", 1000); }
TEST(Damage, LinksOfGeminis) { fuzz("xe6.links", 1000); }
TEST(Damage, LinksOfAries) { fuzz("xc30.links", 1000); }
TEST(Damage, Toml) {
  const std::string text =
      topologyToToml(golden("three_levels.ibnetdiscover")) +
      "[[machine]]\nhosts = \"cn[001-008]\"\ncpus = \"0-7+8-15\"\n[[machine.level]]\nkind = \"numa\"\n"
      "sizes = \"2*4\"\nbytes = \"1 GiB\"\n";
  std::mt19937 random(8);
  int loaded = 0;
  const int times = rounds(4000);
  for (int i = 0; i < times; ++i) {
    exercise(
        damage(text, random), [](const std::string& broken) { return topologyFromToml(broken, "t"); }, loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, times);
}
TEST(Damage, HwlocXml) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  fuzz("two_sockets.hwloc.xml", 300);
}
TEST(Damage, HwlocXmlOfVersionThree) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  fuzz("dies_hbm.hwloc3.xml", 300);
}

TEST(Damage, HwlocWords) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  std::mt19937 random(10);
  int loaded = 0;
  const int times = rounds(1000);
  for (int i = 0; i < times; ++i) {
    const std::string text = damage("pack:2 numa:2 l3:2(size=16MB) core:4 pu:2", random);
    exercise(
        text, [](const std::string& broken) { return topologySource("hwloc").read(broken, "w"); }, loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, times);
}

TEST(Damage, Probe) {
  std::string text = "# measured\n";
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) text += fmt::format("pair n{} n{} {}us 1GB/s\n", a, b, a / 4 == b / 4 ? 1 : 2);
  }
  text += "alone n0 n1 1us 1GB/s\noutward n[0-3] 1GB/s\n";
  std::mt19937 random(11);
  int loaded = 0;
  const int times = rounds(2000);
  for (int i = 0; i < times; ++i) {
    exercise(
        damage(text, random), [](const std::string& broken) { return topologySource("probe").read(broken, "p"); },
        loaded);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, times);
}

TEST(Damage, BytesWithoutSense) {
  std::mt19937 random(9);
  for (int i = 0; i < rounds(2000); ++i) {
    std::string text(random() % 400, ' ');
    for (char& c : text) c = static_cast<char>(random());
    for (const TopologySource& source : topologySources()) {
      if (source.name == "hwloc") continue;
      try {
        (void)source.read(text, "noise");
      } catch (const Error&) {
        continue;
      }
    }
  }
}

TEST(Damage, MemoryStaysBounded) {
  const std::vector<std::string> hostile = {
      "hosts = \"n[0-999999999999]\"\n",
      "hosts = [" +
          [] {
            std::string many;
            for (int i = 0; i < 1000; ++i) many += "\"m" + std::to_string(i) + "-[0-1048575]\",";
            return many;
          }() +
          "]\n",
  };
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const std::string& text : hostile) EXPECT_THROW(topologyFromToml(text, "t"), Error);
  std::string conf;
  for (int i = 0; i < 1000; ++i) conf += fmt::format("SwitchName=s{} Nodes=m{}-[0-1048575]\n", i, i);
  EXPECT_THROW(topologyFromSlurmConf(conf, "t"), Error);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "KiB";
}

}  // namespace
}  // namespace tacc::test
