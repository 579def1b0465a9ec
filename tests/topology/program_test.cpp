// tacc_topo as people use it.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fabric_text.hpp"
#include "golden.hpp"
#include "support/run_program.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/ibnet.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Ran run(const std::string& arguments, const std::string& environment = "") {
  return runProgram(TACC_TEST_TOPO, arguments, environment);
}

class Folder : public testing::Test {
 protected:
  Folder() {
    char name[] = "/tmp/tacc_topo_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::string path_;
};
using TaccTopo = Folder;

TEST_F(TaccTopo, PrintsTheTreeAndWhoSaidWhat) {
  const Ran ran = run("--file " + goldenPath("three_levels.ibnetdiscover"));
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, StartsWith("16 hosts, digest "));
  EXPECT_THAT(ran.output, HasSubstr("│   ├── leaf switch leaf0: 4 hosts cn[001-004]"));
  EXPECT_THAT(ran.output, HasSubstr("uplink of level 1 (leaf switch): 25 GB/s  <- ibnet ("));
}

TEST_F(TaccTopo, LooksAroundWhereItRuns) {
  const Ran ran = run("", "env -u TACC_TOPO_FILE -u TACC_TOPO_SOURCE");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Sources, in the order of their weight:"));
}

TEST_F(TaccTopo, TheEnvironmentNamesAFile) {
  const Ran ran = run("--digest", "TACC_TOPO_FILE=" + goldenPath("fat_tree.ibnetdiscover"));
  EXPECT_EQ(ran.output, digestText(golden("fat_tree.ibnetdiscover")) + "\n");
}

TEST_F(TaccTopo, ExportsTomlThatIsTheSameTopology) {
  const Ran ran = run("--toml --file " + goldenPath("tree.topology.conf"));
  EXPECT_EQ(topologyFromToml(ran.output, "exported"), golden("tree.topology.conf"));
}

TEST_F(TaccTopo, TellsOfRails) {
  const std::string file = " --file " + goldenPath("rails.topology.conf");
  EXPECT_THAT(run(file).output, testing::ContainsRegex("leaf switch  +leaf  +3  +16 to 17  .*2 rails\n"));
  const std::string json = run("--json" + file).output;
  EXPECT_THAT(json, StartsWith("{\n \"name\": \"\",\n \"rails\": 2,"));
  EXPECT_THAT(json, HasSubstr("\"name\": \"ibA-core[1-2]+ibB-core1\",\n   \"kind\": \"root\""));
  EXPECT_THAT(json, HasSubstr("   \"rails\": 2,"));
}

TEST_F(TaccTopo, PutsSeveralFilesTogether) {
  if (!hasHwloc()) GTEST_SKIP() << "this build has no hwloc";
  const std::string node = goldenPath("two_sockets.hwloc.xml"), fabric = goldenPath("fat_tree.ibnetdiscover");
  const Ran ran = run("--file " + node + " --file " + fabric);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("leaf switch leaf0: 2 hosts node[0-1]"));
  EXPECT_THAT(ran.output, HasSubstr("inside of hosts: 4 hosts described  <- hwloc (" + node + ")"));
  const std::string toml = path_ + "/both.toml";
  EXPECT_EQ(run("--toml " + toml, "TACC_TOPO_FILE=" + fabric + ":" + node).output, "");
  EXPECT_EQ(run("--digest --file " + toml).output, run("--digest -f " + fabric + " -f " + node).output);
  const Ran bad = run("--file " + fabric + " --file " + path_ + "/missing");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.output, HasSubstr(path_ + "/missing cannot be read"));
}

TEST_F(TaccTopo, ProbesOnlyAmongRanks) {
  const std::string nobody = "env -i PATH=$PATH HOME=" + path_;
  const Ran ran = run("--probe --save", nobody);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("nothing says that this process is a rank"));
  EXPECT_THAT(run("--save", nobody).output, HasSubstr("--probe"));
  EXPECT_EQ(run("--save", nobody).status, 2);
  const Ran alone = run("--probe", nobody + " RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1 TACC_JOB_SECRET=x");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.output, HasSubstr("there is no network to measure"));
}

TEST_F(TaccTopo, ComparesFiles) {
  const std::string toml = path_ + "/a.toml";
  std::ofstream(toml) << topologyToToml(golden("fat_tree.ibnetdiscover"));
  EXPECT_EQ(run("--diff " + toml + " " + goldenPath("fat_tree.ibnetdiscover")).status, 0);
  std::ofstream(toml, std::ios::app) << "[[machine]]\ncpus = \"0-3\"\n";
  const Ran ran = run("--diff " + toml + " " + goldenPath("fat_tree.ibnetdiscover"));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr("4 hosts are described differently inside: node[0-3]"));
}

TEST_F(TaccTopo, DrawsWellFormedPictures) {
  if (!hasHwloc() || !hasYaml()) GTEST_SKIP() << "this build lacks hwloc or libyaml";
  for (const auto& entry : std::filesystem::directory_iterator(TACC_TEST_GOLDEN)) {
    const std::string svg = path_ + "/out.svg";
    const Ran ran = run("--svg " + svg + " --file " + entry.path().string());
    ASSERT_EQ(ran.status, 0) << ran.output;
    const std::string text = readText(svg);
    EXPECT_THAT(text, StartsWith("<svg xmlns"));
    // Every element is closed, so what is opened and closed is balanced.
    std::vector<std::string> open;
    for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
      const std::size_t end = text.find('>', at);
      ASSERT_NE(end, std::string::npos);
      const std::string tag = text.substr(at + 1, end - at - 1);
      if (tag.ends_with('/')) continue;
      const std::string name = tag.substr(tag.starts_with('/') ? 1 : 0, tag.find(' '));
      if (!tag.starts_with('/')) {
        open.push_back(name);
      } else {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(open.back(), name);
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty());
    EXPECT_LT(text.size(), 200'000u);
  }
}

TEST_F(TaccTopo, SaysWhatIsWrong) {
  EXPECT_EQ(run("--file /nonexistent").status, 2);
  std::ofstream(path_ + "/poem") << "Shall I compare thee to a summer's day?\n";
  EXPECT_THAT(run("--file " + path_ + "/poem").output, HasSubstr("not known what kind of file this is"));
  EXPECT_THAT(run("--source slrm").output, HasSubstr("did you mean slurm?"));
  EXPECT_EQ(run("--nonsense").status, 2);
  EXPECT_THAT(run("--sources").output, HasSubstr("sunway"));
}

TEST_F(TaccTopo, EveryExampleIsRead) {
  if (!hasHwloc() || !hasYaml()) GTEST_SKIP() << "this build lacks hwloc or libyaml";
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TACC_TEST_EXAMPLES)) {
    if (entry.path().extension() != ".toml") continue;
    ++examples;
    const Ran ran = run("--file " + entry.path().string());
    EXPECT_EQ(ran.status, 0) << ran.output;
    const std::string text = readText(entry.path());
    const Topology topology = topologyFromToml(text, entry.path());
    EXPECT_FALSE(topology.name().empty()) << entry.path();
    EXPECT_TRUE(topology.level(topology.root()).alpha && topology.level(topology.root()).bandwidth) << entry.path();
    EXPECT_TRUE(topology.level(0).uplink) << entry.path();
  }
  EXPECT_GE(examples, 6);
}

/// The real libibnetdisc over the simulator of the InfiniBand diagnostics, if both are here.
class Subnet : public Folder {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // AddressSanitizer ends the program for the first; the second does not return under ThreadSanitizer.
    GTEST_SKIP() << "libumad2sim reads beyond a buffer of its own, and at the end joins a thread that it has cancelled";
#endif
    if (!hasIbnetdisc() || !std::filesystem::exists(library_) || std::system("command -v ibsim >/dev/null") != 0)
      GTEST_SKIP() << "libibnetdisc, ibsim-utils or libumad2sim0 is not installed";
  }

  /// What tacc_topo finds in this network from this card.
  Topology ask(const std::string& fabric, const std::string& card) {
    std::array<int, 2> input{};  // never written: at its end ibsim would spin
    if (::pipe(input.data()) != 0) ADD_FAILURE() << "no pipe";
    const std::string socket = "tacc" + std::to_string(::getpid()), log = path_ + "/log";
    const pid_t simulator = ::fork();
    if (simulator == 0) {
      ::setenv("IBSIM_SOCKNAME", socket.c_str(), 1);
      ::dup2(input[0], STDIN_FILENO);
      ::close(input[1]);
      if (std::freopen(log.c_str(), "w", stdout) == nullptr || std::freopen(log.c_str(), "a", stderr) == nullptr)
        ::_exit(126);
      ::execlp("ibsim", "ibsim", "-s", fabric.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(input[0]);
    Ran ran;
    for (int attempt = 0; attempt < 100; ++attempt) {  // until the simulator listens
      ran = run("--toml --source ibnet",
                "env IBSIM_SOCKNAME=" + socket + " SIM_HOST=" + card + " LD_PRELOAD=" + library_);
      if (ran.status == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ::kill(simulator, SIGKILL);
    ::waitpid(simulator, nullptr, 0);
    ::close(input[1]);
    const std::size_t toml = ran.output.find("hosts = ");  // the simulator's library greets on standard error
    EXPECT_EQ(ran.status, 0) << ran.output << readText(log);
    return toml == std::string::npos ? Topology() : topologyFromToml(ran.output.substr(toml), "live");
  }

  const std::string library_ = "/usr/lib/" TACC_TEST_TRIPLET "/umad2sim/libumad2sim.so";
};

TEST_F(Subnet, OfAFatTree) { EXPECT_EQ(ask(goldenPath("fat_tree.ibsim"), "node0"), golden("fat_tree.ibnetdiscover")); }

/// Cards without names, SHARP, and login hosts at the spines of two scalable units. The simulator's links are all
/// 4xSDR.
TEST_F(Subnet, WithRails) {
  FabricText fabric = FabricText::railOptimised(
      2, 4, 2, 2,
      [](int host, int card) {
        return host == 3 ? "MT4129 ConnectX7   Mellanox Technologies" : fmt::format("dgx{} mlx5_{}", host, card);
      },
      "4xSDR");
  for (std::size_t at = 0; at < 2; ++at) {
    fabric.cable(at, fabric.addCard(fmt::format("login{} mlx5_0", at)), "4xSDR");
    fabric.cable(at, fabric.addCard("Mellanox Technologies Aggregation Node"), "4xSDR");
  }
  fabric.cable(2, fabric.addCard("localhost mlx5_0", 0x5e), "4xSDR");
  fabric.cable(3, fabric.addCard("localhost mlx5_1", 0x5e), "4xSDR");
  const std::string text = fabric.text(), file = path_ + "/rails";
  std::ofstream(file) << text;
  const Topology expected = topologySource("ibnet").read(text, file);
  EXPECT_EQ(expected.level(1).rails, 2u);
  EXPECT_TRUE(expected.find("login1"));
  EXPECT_TRUE(expected.find("unnamed-5e"));
  const std::size_t login = text.find("login0");
  const Topology live = ask(file, text.substr(text.rfind("\"H-", login) + 1, 18));
  EXPECT_EQ(topologyToToml(live), topologyToToml(expected));
}

}  // namespace
}  // namespace tacc::test
