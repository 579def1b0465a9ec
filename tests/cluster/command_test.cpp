// `./dev cluster` as its users see it, and that it leaves nothing behind, whatever ends it.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

struct Outcome {
  int status;
  std::string output;  ///< standard error too
};

std::vector<int> allProcesses() {
  std::vector<int> pids;
  DIR* folder = ::opendir("/proc");
  while (const dirent* entry = ::readdir(folder))
    if (const int pid = std::atoi(static_cast<const char*>(entry->d_name)); pid > 0) pids.push_back(pid);
  ::closedir(folder);
  return pids;
}

std::string commandLine(int pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::string text;
  std::getline(file, text);  // the process may have ended, which iterators would throw for
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

/// Identifies the network that a process is in; 0 when it has ended.
ino_t networkOf(int pid) {
  struct stat facts {};
  return ::stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &facts) == 0 ? facts.st_ino : 0;
}

class ClusterCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (!IsSkipped()) run("down");
  }

  Outcome run(const std::string& arguments) const {
    const std::string command = fmt::format("'{}' --name {} {} 2>&1", tool(), name_, arguments);
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string output;
    char bytes[512];
    for (size_t n; (n = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;) output.append(bytes, n);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
  }

  /// Starts the command with the words of `arguments`, its output discarded.
  pid_t start(const std::string& arguments) const {
    std::vector<std::string> words = {tool(), "--name", name_};
    std::istringstream in(arguments);
    for (std::string word; in >> word;) words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    if (std::freopen("/dev/null", "w", stdout) != nullptr && std::freopen("/dev/null", "w", stderr) != nullptr)
      ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  /// Holders and processes on hosts or switches; remembers their networks, so that what stays behind is found later.
  size_t countParts() {
    std::set<int> parts;
    const ino_t here = networkOf(::getpid());
    for (const int pid : allProcesses())
      if (commandLine(pid).rfind(fmt::format("virtual-cluster {} ", name_), 0) == 0) {
        parts.insert(pid);
        if (networkOf(pid) != 0 && networkOf(pid) != here) networks_.insert(networkOf(pid));
      }
    for (const int pid : allProcesses())
      if (networks_.count(networkOf(pid)) != 0) parts.insert(pid);
    return parts.size();
  }

  /// Polls, as a killed command can tell nobody. False if it does not come to pass.
  template <typename Condition>
  bool becomes(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition(countParts())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  bool reaches(size_t parts) {
    return becomes([parts](size_t count) { return count == parts; });
  }

  static std::string tool() { return std::getenv("VIRTUAL_CLUSTER_TOOL"); }

  std::string name_ = fmt::format("command.{}", ::getpid());
  std::set<ino_t> networks_;
};

TEST_F(ClusterCommandTest, downLeavesNothing) {
  EXPECT_EQ(run("status").status, 1);
  ASSERT_EQ(run("up 2 2 200 100").status, 0);
  EXPECT_EQ(countParts(), 7U);  // four hosts, two leaves, the core
  EXPECT_NE(run("status").output.find("tacc4 10.77.0.4 leaf2"), std::string::npos);
  EXPECT_EQ(run("exec 3 hostname").output, "tacc3\n");
  run("exec 2 sh -c 'sleep 1000 >/dev/null 2>&1 &'");
  EXPECT_EQ(countParts(), 8U);
  EXPECT_EQ(run("up 1 1 0 0").status, 1);
  EXPECT_EQ(run("down").status, 0);
  EXPECT_EQ(countParts(), 0U);
  EXPECT_EQ(run("status").status, 1);
  EXPECT_EQ(run("down").status, 0);
}

TEST_F(ClusterCommandTest, statusShowsWhoIsUnplugged) {
  ASSERT_EQ(run("up 1 2 0 0").status, 0);
  ASSERT_EQ(run("unplug 2").status, 0);
  const std::string status = run("status").output;
  EXPECT_EQ(status.find("unplugged"), status.rfind("unplugged"));
  EXPECT_NE(status.find("unplugged"), std::string::npos);
  ASSERT_EQ(run("plug 2").status, 0);
  EXPECT_EQ(run("status").output.find("unplugged"), std::string::npos);
  EXPECT_EQ(run("unplug 3").status, 1);
}

TEST_F(ClusterCommandTest, limitChangesBothEndsOfALink) {
  ASSERT_EQ(run("up 2 1 100 200").status, 0);
  ASSERT_EQ(run("limit leaf1 50").status, 0);
  ASSERT_EQ(run("limit 2 30").status, 0);
  EXPECT_NE(run("exec 2 tc qdisc show dev eth0").output.find("rate 30Mbit"), std::string::npos);
  EXPECT_NE(run("exec 1 tc qdisc show dev eth0").output.find("rate 100Mbit"), std::string::npos);
  for (const char* wrong : {"limit leaf3 50", "limit 3 50", "limit core 50", "limit leaf1 0"})
    EXPECT_EQ(run(wrong).status, 1) << wrong;
  EXPECT_NE(run("limit leaf3 50").output.find("leaf1 leaf2"), std::string::npos);
  ASSERT_EQ(run("down").status, 0);
  ASSERT_EQ(run("up 1 1 0 0").status, 0);
  EXPECT_NE(run("limit 1 50").output.find("no limit"), std::string::npos) << "there is nothing to change";
}

TEST_F(ClusterCommandTest, runTellsEachRankWhoItIs) {
  const Outcome outcome =
      run("run --cluster 2,2,0,0 --ranks 8 --place cyclic --label -- sh -c "
          "'echo $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $MASTER_PORT $(hostname)'");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("[0] 8 0 10.77.0.1 29500 tacc1\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[1] 8 0 10.77.0.1 29500 tacc3\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[6] 8 1 10.77.0.1 29500 tacc2\n"), std::string::npos) << outcome.output;
  EXPECT_EQ(countParts(), 0U);
}

TEST_F(ClusterCommandTest, runUsesTheClusterThatIsUp) {
  ASSERT_EQ(run("up 1 2 0 0").status, 0);
  EXPECT_EQ(run("run --cluster 1,3,0,0 true").status, 1);
  EXPECT_EQ(run("run true").status, 0);
  EXPECT_EQ(countParts(), 4U);
}

TEST_F(ClusterCommandTest, oneRankThatFailsEndsAll) {
  EXPECT_EQ(run("run --cluster 1,3,0,0 -- sh -c 'test $RANK != 1 || exit 7; sleep 1000'").status, 7);
  EXPECT_EQ(countParts(), 0U);
}

TEST_F(ClusterCommandTest, ranksArePlaced) {
  EXPECT_EQ(run("place --cluster 2,2,0,0 --ranks 8").output, "1 1 2 2 3 3 4 4\n");
  EXPECT_EQ(run("place --cluster 2,2,0,0 --ranks 3").output, "1 2 3\n");
  EXPECT_EQ(run("place --cluster 2,2,0,0 --ranks 6 --place cyclic").output, "1 3 2 4 1 3\n");
  const std::string shuffled = run("place --cluster 2,4,0,0 --ranks 8 --place random:5").output;
  EXPECT_EQ(shuffled, run("place --cluster 2,4,0,0 --ranks 8 --place random:5").output);
  EXPECT_NE(shuffled, run("place --cluster 2,4,0,0 --ranks 8 --place random:6").output);
  EXPECT_EQ(run("place --cluster 2,2,0,0 --ranks 8 --place elsewhere").status, 1);
}

/// A file in a folder of its own.
class ClusterFileTest : public ClusterCommandTest {
 protected:
  std::string write(const std::string& text) const {
    const std::string path = fmt::format("{}/cluster_file_test.{}.toml", testing::TempDir(), ::getpid());
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(ClusterFileTest, makesWhatATopologyFileSays) {
  const std::string path = write(R"(
[node]
uplink = "12.5 MB/s"
uplinks = { b2 = "2.5 MB/s" }
[[level]]
groups = { left = "a[1-3]", right = "b[1-2]" }
uplinks = { left = "25 MB/s", right = "6.25 MB/s" }
latency = "100 us"
[[level]]
latency = "400 us"
)");
  EXPECT_EQ(run("shape " + path).output,
            "a1 100000 leaf1 200000\na2 100000 leaf1 200000\na3 100000 leaf1 200000\n"
            "b1 100000 leaf2 50000\nb2 20000 leaf2 50000\n");
  EXPECT_EQ(run("place --ranks 5 --place cyclic --cluster " + path).output, "1 4 2 5 3\n");
  const Outcome made = run("up " + path);
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_EQ(run("exec b2 hostname").output, "b2\n");
  const std::string shaped = run("exec b2 tc qdisc show dev eth0").output;
  EXPECT_NE(shaped.find("rate 20Mbit"), std::string::npos) << shaped;
  const bool holds = shaped.find("delay 50us") != std::string::npos;
  EXPECT_NE(holds, made.output.find("has no netem") != std::string::npos) << shaped << made.output;
  EXPECT_NE(run("status").output.find("b2 10.77.0.5 leaf2"), std::string::npos);
  EXPECT_EQ(run("run --cluster " + path + " true").status, 0) << "it is up";
  EXPECT_EQ(run("run --cluster 1,5,0,0 true").status, 1);
  EXPECT_EQ(countParts(), 8U) << "five hosts, two leaves, the core";
}

TEST_F(ClusterFileTest, saysWhichLineCannotBeBuilt) {
  const std::string torus = write(R"(hosts = "n[1-4]"
[node]
uplink = "1 GB/s"
[[level]]
wiring = "torus"
dimensions = [2, 2]
)");
  Outcome outcome = run("up " + torus);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find(torus + ":4: level 1 (root) is wired as torus"), std::string::npos) << outcome.output;
  outcome = run("up " + write("[[level]]\ngroups = { a = \"x1\", b = \"x2\" }\n[[level]]\n"));
  EXPECT_NE(outcome.output.find("nobody says what leaves the group of x1"), std::string::npos) << outcome.output;
  outcome = run("up " + write("hosts = \"a,a\"\n"));
  EXPECT_NE(outcome.output.find("a stands twice"), std::string::npos) << outcome.output;
  EXPECT_NE(run("up /no/such.toml").output.find("nor a topology file that is there"), std::string::npos);
  const std::string node = "hosts = \"n[1-4]\"\n[node]\nuplink = ", pairs = "[[level]]\nrule = \"position / 2\"\n";
  const std::pair<std::string, const char*> bad[] = {
      {node + "\"1 B/s\"\n[[level]]\n", ":2: the link of host n1 carries 1 B/s; a link of a virtual cluster carries"},
      {node + "\"9000 Gbit/s\"\n[[level]]\n", ":2: the link of host n1 carries 1.125e+12 B/s"},
      {node + "\"1 GB/s\"\n" + pairs + "uplink = \"0.1 kB/s\"\n[[level]]\n",
       ":4: level 1 (leaf): the uplink of the group of n1 carries 100 B/s"},
      {node + "\"1 GB/s\"\n" + pairs + "uplink = \"1 MB/s\"\n[[level]]\nlatency = \"100 s\"\n",
       ":7: level 2 (root) has a latency of 100 s"},
      {node + "\"0 GB/s\"\n[[level]]\n", ":3:10, [node] uplink is \"0 GB/s\""},
      {node + "\"1 GB/s\"\n" + pairs + "[[level]]\n", ":4: level 1 (leaf): nobody says what leaves the group of n1"},
      {"hosts = \"n1,leaf1\"\n", ": the host \"leaf1\" has the name of a switch"},
      {"hosts = \"n[1-5000]\"\n", ": 5000 hosts; a virtual cluster has 1 to 250"},
      {"hosts = \"n[1-4\"\n", ":1:9, hosts: "},
  };
  for (const auto& [text, said] : bad) {
    const std::string path = write(text);
    outcome = run("up " + path);
    EXPECT_EQ(outcome.status, 1) << text;
    EXPECT_NE(outcome.output.find(path + said), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(countParts(), 0U);
}

TEST_F(ClusterCommandTest, saysInOneLineWhyThereIsNone) {
  const std::string command =
      fmt::format("setpriv --bounding-set -sys_admin --inh-caps -sys_admin '{}' up 1 1 0 0 2>&1", tool());
  FILE* pipe = ::popen(command.c_str(), "r");
  char line[512] = "";
  EXPECT_NE(std::fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_EQ(std::string(line).rfind("no virtual cluster here: ", 0), 0U) << line;
  EXPECT_EQ(std::fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), 77);
}

class Ended : public ClusterCommandTest, public testing::WithParamInterface<int> {};

TEST_P(Ended, runLeavesNothing) {
  const pid_t pid = start("run --cluster 1,2,0,0 -- sh -c sleep${IFS}1000&sleep${IFS}1000&wait");
  // Two hosts, a leaf, the core, and on each host a shell with two children.
  EXPECT_TRUE(reaches(4 + 2 * 3));
  ::kill(pid, GetParam());
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (GetParam() != SIGKILL) {
    EXPECT_EQ(WEXITSTATUS(status), 128 + GetParam());
  }
  EXPECT_TRUE(reaches(0));
}

TEST_P(Ended, whatIsBeingMadeVanishes) {
  const pid_t pid = start("up 2 4 100 100");
  EXPECT_TRUE(becomes([](size_t count) { return count >= 3; }));
  ::kill(pid, GetParam());
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(run("down").status, 0);
  EXPECT_TRUE(reaches(0));
  EXPECT_EQ(run("up 1 1 0 0").status, 0);
}

INSTANTIATE_TEST_SUITE_P(ClusterCommandTest, Ended, testing::Values(SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace tacc::test
