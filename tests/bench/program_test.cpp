#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "bench/run_program.hpp"

namespace tacc::bench::test {
namespace {

Outcome run(const std::string& arguments) { return runLine(program() + " " + arguments); }

/// With one rank of tacc and one of a peer that behaves as `mode` says.
Outcome runBesideFaultyPeer(const std::string& mode) {
  return run(
      fmt::format("allreduce --ranks 1 --size 1K -n 4 --repetitions 2 --peer gloo --peer-dir {} "
                  "--peer-args gloo={}",
                  setting("TACC_BENCH_FAULTY_PEERS"), mode));
}

/// Processes whose command line holds `text`.
int countProcesses(const std::string& text) {
  int count = 0;
  DIR* folder = ::opendir("/proc");
  while (const dirent* entry = ::readdir(folder)) {
    std::ifstream file(fmt::format("/proc/{}/cmdline", static_cast<const char*>(entry->d_name)));
    std::string line;
    std::getline(file, line);  // nothing, without an exception, where the process ends meanwhile
    if (line.find(text) != std::string::npos) ++count;
  }
  ::closedir(folder);
  return count;
}

TEST(Program, helpIsNotAnError) {
  const Outcome outcome = run("--help");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.has("--minbytes"));
}

TEST(Program, otherProcessesComputeMeanwhileAndEndWithIt) {
  const std::string mark = "-w 3 --load 2";  // the children's command line is their parent's
  const Outcome outcome = run("allreduce --ranks 2 --size 1K -n 20 --repetitions 2 " + mark);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("# 2 other processes compute meanwhile")) << outcome.output;
  std::string words = mark;
  for (char& c : words)
    if (c == ' ') c = '\0';
  EXPECT_EQ(countProcesses(words), 0);
}

class BadUsage : public testing::TestWithParam<const char*> {};

TEST_P(BadUsage, givesASentenceAndStatusTwo) {
  const Outcome outcome = run(GetParam());
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_TRUE(outcome.has("tacc_bench: ")) << outcome.output;
  EXPECT_TRUE(outcome.has("Try tacc_bench --help.")) << outcome.output;
  EXPECT_EQ(outcome.count("\n"), 2) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(
    Program, BadUsage,
    testing::Values("", "dance", "allreduce --dance", "allreduce extra", "allreduce -b 8Q", "allreduce -b 2M -e 1M",
                    "allreduce -f 1", "allreduce -i 0", "allreduce -f 2 -i 8", "allreduce --size 8 -b 8",
                    "allreduce -n 0", "allreduce -n x", "allreduce -w -1", "allreduce -c 2", "allreduce -d f32",
                    "allreduce -o mean", "broadcast -r 2 --ranks 2", "broadcast -r x", "allreduce --ranks 0",
                    "allreduce --memory shared", "allreduce --peer foo", "allreduce --peer gloo+tacc",
                    "allreduce --peer gloo,gloo", "allreduce --peer-args gloo", "broadcast --bound", "scan -o avg",
                    "allreduce --cluster 2,4", "allreduce --cluster 2,4,x,0", "allreduce --cluster 1,2,0,0 --threads",
                    "allreduce --reference gloo", "allreduce --reference tacc2", "allreduce -m 0", "allreduce -N -1",
                    "allreduce -a 4", "allreduce -z 2", "allreduce -T 0", "allreduce -p 1", "allreduce -R 2",
                    "allreduce -R 1 --memory library", "allreduce --append", "allreduce -z 1 --streams 2",
                    "allreduce -I 1 -z 0", "allreduce -I 1 -C 1", "barrier --plot x.svg"));

bool isMissingInGloo(std::string_view collective) {
  return collective == "reducescatter" || collective == "scan" || collective == "exscan";
}

TEST(Program, everyCollectiveRunsOnThreeRanks) {
  for (const char* collective : {"allreduce", "broadcast", "reduce", "allgather", "reducescatter", "alltoall", "gather",
                                 "scatter", "scan", "exscan", "sendrecv", "barrier"}) {
    const Outcome outcome = run(fmt::format("{} --ranks 3 -b 8 -e 40K -f 70 -n 6 --repetitions 2 -r all", collective));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.has("# Out of bounds values : 0 OK")) << outcome.output;
    EXPECT_TRUE(outcome.has("# summary: 3 ranks, ")) << outcome.output;
  }
}

TEST(Program, measuresCallsOfNothing) {
  for (const char* collective : {"allreduce", "broadcast", "allgather", "reducescatter", "alltoall", "sendrecv"}) {
    const Outcome outcome = run(fmt::format("{} --size 0 -n 6 --repetitions 1", collective));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.has("# summary: 2 ranks, ")) << outcome.output;
  }
}

/// The same program of an MPI, once by itself and once with libtacc_mpi preloaded.
TEST(Program, anMpiIsMeasuredWithTheLibraryPreloaded) {
  const std::string peers = "," + setting("TACC_BENCH_PEERS") + ",";
  for (const char* mpi : {"mpich", "openmpi"}) {
    if (peers.find(fmt::format(",{},", mpi)) == std::string::npos) continue;
    const Outcome outcome =
        run(fmt::format("allreduce --ranks 2 --size 8 -n 4 --repetitions 1 --peer {0},{0}+tacc", mpi));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.has(fmt::format(" x {}+tacc", mpi))) << outcome.output;
    EXPECT_FALSE(outcome.has("wrong elements")) << outcome.output;
  }
}

TEST(Program, everyTypeAndOperationIsRight) {
  const Outcome outcome = run("allreduce --ranks 2 --size 10000 -d all -o all -n 2 --repetitions 1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("bfloat16     avg")) << outcome.output;
}

TEST(Program, callsAreMadeInEveryWay) {
  for (const char* more : {"-m 5", "-z 0", "--streams 3 -m 2", "-R 1", "-C 1 -a 2", "-I 1 -a 3", "-T 20", "-N 2",
                           "--threads -p 1", "--threads --streams 2 -T 20"}) {
    const Outcome outcome =
        run(fmt::format("allreduce --ranks 2 -b 8 -e 300K -f 40000 -n 10 --repetitions 2 {}", more));
    EXPECT_EQ(outcome.status, 0) << more << "\n" << outcome.output;
    EXPECT_TRUE(outcome.has("# Out of bounds values : 0 OK")) << more << "\n" << outcome.output;
  }
}

TEST(Program, runsAreAddedToAFile) {
  const std::string file = fmt::format("{}/{}", ::testing::TempDir(), ::getpid());
  const std::string broken = "{\"version\":";  // of a run that was ended while it wrote
  std::ofstream(file) << broken;
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(test::run(fmt::format("allreduce --ranks 2 --size 8 -n 4 -I 1 -N 3 --json {} --append", file)).status, 0);
  std::ifstream lines(file);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, broken);
  int runs = 0;
  for (; std::getline(lines, line); ++runs) {
    const auto report = nlohmann::json::parse(line);
    EXPECT_EQ(report["results"].size(), 3U);
    EXPECT_EQ(report["hosts"].size(), 2U);
    EXPECT_GE(report["results"][0]["calls"]["p99"], report["results"][0]["calls"]["p50"]);
  }
  EXPECT_EQ(runs, 2);
  ::unlink(file.c_str());
}

TEST(Program, ranksMayBeThreads) {
  for (const char* more : {"", "--algo ring"}) {
    const Outcome outcome = run(fmt::format("allreduce --ranks 2 --threads --size 64K -n 10 {}", more));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  }
}

TEST(Program, theForcedAlgorithmIsTheOneThatRan) {
  const std::string json = testing::TempDir() + fmt::format("tacc_bench_algorithm.{}.json", ::getpid());
  const Outcome outcome = run(fmt::format("allreduce --ranks 2 --size 64K -n 10 --algo ring --json {}", json));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  std::ifstream file(json);
  EXPECT_EQ(nlohmann::json::parse(file)["results"][0]["algorithm"], "ring");
  std::remove(json.c_str());
}

TEST(Program, modesOfEasgdAreTimedBesideAnAllReduce) {
  const std::string json = testing::TempDir() + fmt::format("tacc_bench_easgd.{}.json", ::getpid());
  for (const char* memory : {"", "--private-memory"}) {
    const Outcome outcome =
        run(fmt::format("easgd -n 3 --size 256K --tau 1,3 --repetitions 2 {} --json {}", memory, json));
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    std::ifstream file(json);
    const auto report = nlohmann::json::parse(file);
    EXPECT_EQ(report["ranks"], 3);
    EXPECT_GT(report["allreduce_ms"].get<double>(), 0);
    ASSERT_EQ(report["modes"].size(), 18U);
    for (const auto& row : report["modes"]) {
      EXPECT_TRUE(outcome.has(row["mode"].get<std::string>()));
      EXPECT_GT(row["exchange_ms"].get<double>(), 0);
      EXPECT_GT(row["allreduce_ms"].get<double>(), 0);
      EXPECT_GT(row["bound_ms"].get<double>(), 0);
      EXPECT_GT(row["step_ms"].get<double>(), 0);
      EXPECT_GE(row["hidden_share"].get<double>(), 0);
    }
  }
  // A slow rank holds up those that wait for it, and no others.
  const Outcome slow =
      run(fmt::format("easgd -n 2 --mode sync2,async --wire bfloat16 --size 4K --tau 1 --repetitions 3 --compute 0.01 "
                      "--slow 30 --json {}",
                      json));
  ASSERT_EQ(slow.status, 0) << slow.output;
  std::ifstream file(json);
  const auto report = nlohmann::json::parse(file);
  EXPECT_GT(report["modes"][0]["others_step_ms"].get<double>(), 250);
  EXPECT_LT(report["modes"][1]["others_step_ms"].get<double>(), 150);
  // Round robin whose ranks also compute in turn takes as many computations.
  const Outcome turns = run(fmt::format(
      "easgd -n 3 --mode original,sync2 --size 4K --tau 1 --repetitions 3 --compute 0.05 --in-turn --json {}", json));
  ASSERT_EQ(turns.status, 0) << turns.output;
  std::ifstream turnsFile(json);
  const auto inTurn = nlohmann::json::parse(turnsFile);
  EXPECT_GE(inTurn["modes"][0]["step_ms"].get<double>(), 150);
  EXPECT_LT(inTurn["modes"][1]["step_ms"].get<double>(), 150);
  std::remove(json.c_str());
  EXPECT_EQ(run("easgd --wire float8").status, 2);
  const Outcome unknown = run("easgd --mode sync4");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(unknown.has("there is no mode sync4; modes are: all original async"));
}

TEST(Program, easgdIsMeasuredBesideThePeersAllReduce) {
  const std::string json = testing::TempDir() + fmt::format("tacc_bench_easgd_peers.{}.json", ::getpid());
  const std::string peers = setting("TACC_BENCH_PEERS");
  const Outcome outcome = run(fmt::format("easgd -n 2 --mode sync2 --size 64K --tau 2 --repetitions 2 --json {}{}",
                                          json, peers.empty() ? "" : " --peer " + peers));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::ifstream file(json);
  const auto report = nlohmann::json::parse(file);
  std::string names;
  for (const auto& peer : report["peers"]) {
    names += (names.empty() ? "" : ",") + peer["name"].get<std::string>();
    EXPECT_GT(peer["allreduce_ms"].get<double>(), 0);
    EXPECT_GT(peer["tacc_allreduce_ms"].get<double>(), 0);
  }
  EXPECT_EQ(names, peers);
  std::remove(json.c_str());
  EXPECT_EQ(run("easgd --peer nccl").status, 2);
  const Outcome launched = run("easgd --launched --peer gloo");
  EXPECT_EQ(launched.status, 2);
  EXPECT_TRUE(launched.has("a launcher has started them")) << launched.output;
}

TEST(Program, libraryMemoryIsMeasuredAgainstTheBound) {
  const Outcome outcome = run("allreduce --ranks 2 --memory library --size 1M -n 10");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("bound   /time")) << outcome.output;
  EXPECT_TRUE(outcome.has("x the memory bound")) << outcome.output;
}

TEST(Program, unknownAlgorithmsAreTheLibrarysError) {
  const Outcome outcome = run("allreduce --ranks 2 --size 1K --algo dance");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("dance")) << outcome.output;
}

TEST(Program, realPeersAgree) {
  const std::string peers = setting("TACC_BENCH_PEERS");
  if (peers.empty()) GTEST_SKIP() << "no peer was built";
  const std::string json = testing::TempDir() + fmt::format("tacc_bench_test.{}.json", ::getpid());
  for (const char* collective : {"allreduce", "broadcast", "reduce", "allgather", "reducescatter", "alltoall", "gather",
                                 "scatter", "scan", "exscan", "sendrecv"}) {
    const Outcome outcome = run(fmt::format("{} --ranks 2 -b 8 -e 40K -f 70 -n 2 --repetitions 1 --peer {} --json {}",
                                            collective, peers, json));
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    std::ifstream file(json);
    const auto report = nlohmann::json::parse(file);
    ASSERT_EQ(report["results"].size(), 3U);
    for (const auto& [name, peer] : report["results"][1]["peers"].items()) {
      if (name == "gloo" && isMissingInGloo(collective)) continue;
      EXPECT_GT(peer["time"].get<double>(), 0) << collective << " by " << name;
    }
  }
  std::remove(json.c_str());
}

TEST(Program, peersRunBetweenVirtualHosts) {
  const std::string peers = setting("TACC_BENCH_PEERS");
  if (peers.empty()) GTEST_SKIP() << "no peer was built";
  const std::string json = testing::TempDir() + fmt::format("tacc_bench_cluster.{}.json", ::getpid());
  const std::string reference = peers.substr(0, peers.find(','));
  for (const char* place : {"cyclic", "random:1"}) {
    const Outcome outcome =
        run(fmt::format("allreduce --cluster 2,1,800,400 --ranks 4 --place {} --size 4K -n 2 --repetitions 1 "
                        "--peer {} --reference {} --json {}",
                        place, peers, reference, json));
    if (outcome.has("no virtual cluster here")) GTEST_SKIP() << outcome.output;
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.has(" on      tacc2 ")) << outcome.output;
    std::ifstream file(json);
    const auto report = nlohmann::json::parse(file);
    EXPECT_EQ(report["reference"], reference);
    EXPECT_EQ(report["cluster"]["place"], place);
    // 4 KiB out of each of two hosts, and over the slower uplinks.
    EXPECT_NEAR(report["results"][0]["bound"]["time"].get<double>(), 4096 * 8 / 400.0, 1e-6);
    EXPECT_GT(report["results"][0]["cpu_seconds"].get<double>(), 0);
  }
  std::remove(json.c_str());
}

TEST(Program, taccRunsOnAVirtualHost) {
  const Outcome outcome = run("allreduce --cluster 1,1,0,0 --ranks 2 --size 64K -n 10");
  if (outcome.has("no virtual cluster here")) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has(" on      tacc1 ")) << outcome.output;
}

TEST(Program, aRightPeerIsComparedWith) {
  const Outcome outcome = runBesideFaultyPeer("right");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has(" x gloo")) << outcome.output;
}

TEST(Program, aPeerThatDoesNotOfferTheCallIsNotAnError) {
  const Outcome outcome = runBesideFaultyPeer("absent");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("gloo not comparable")) << outcome.output;
}

TEST(Program, wrongResultsGiveStatusOne) {
  const Outcome outcome = runBesideFaultyPeer("wrong");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("gloo had 1 wrong elements at 1 KiB")) << outcome.output;
  EXPECT_TRUE(outcome.has("FAILED")) << outcome.output;
}

TEST(Program, anErrorOfALibraryIsReported) {
  const Outcome outcome = runBesideFaultyPeer("throw");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("tacc_bench: gloo: rank 0: out of luck")) << outcome.output;
}

TEST(Program, anErrorWhileStartingIsReported) {
  const Outcome outcome = runBesideFaultyPeer("refuse");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("nobody may join")) << outcome.output;
}

TEST(Program, aRankThatDiesIsReported) {
  const Outcome outcome = runBesideFaultyPeer("die");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("tacc_bench: gloo: rank 0 ended while doing \"time")) << outcome.output;
}

TEST(Program, aPeerThatWasNotBuiltIsReported) {
  const Outcome outcome = run("allreduce --ranks 2 --peer gloo --peer-dir /nonexistent");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(outcome.has("the peer gloo is not there")) << outcome.output;
}

TEST(Program, unwritableFilesAreReportedBeforeTheMeasurement) {
  for (const char* words : {"allreduce --ranks 2 --json", "conv --net resnet50 --json", "conv --net resnet50 --plot",
                            "gemm --json", "gemm --plot", "layers --json", "easgd --ranks 2 --json"}) {
    const Outcome outcome = run(std::string(words) + " /nonexistent/file");
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_EQ(outcome.output, "tacc_bench: cannot write /nonexistent/file\n") << words;
  }
}

class Stopped : public testing::TestWithParam<int> {};

TEST_P(Stopped, leavesNoProcess) {
  const std::string program = setting("TACC_BENCH_PROGRAM");
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    ::execl(program.c_str(), program.c_str(), "allreduce", "--ranks", "2", "--size", "64K", "-n", "100000000", nullptr);
    ::_exit(127);
  }
  const std::string workers = fmt::format("tacc_bench.{}.", pid);
  const auto waitFor = [&](int count) {
    for (int i = 0; i < 1000 && countProcesses(workers) != count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return countProcesses(workers);
  };
  EXPECT_EQ(waitFor(2), 2);
  ::kill(pid, GetParam());
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (GetParam() != SIGKILL) {
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + GetParam());
  }
  EXPECT_EQ(waitFor(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Program, Stopped, testing::Values(SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace tacc::bench::test
