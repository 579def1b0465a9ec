// tacc_bench as one job of all ranks that a launcher has started: both MPIs' own, and hosts of a virtual cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/run_program.hpp"

namespace tacc::bench::test {
namespace {

struct Launcher {
  const char* peer;     // its MPI
  const char* command;  // up to the number of ranks
  const char* name;     // as tacc calls it
  const char* hosts;    // with {0} for the remote shell: further words for two ranks on each of two hosts
};
constexpr Launcher mpich{"mpich", "mpiexec.mpich -n", "Hydra",
                         "-launcher ssh -launcher-exec {0} -iface eth0 -hosts tacc1:2,tacc2:2"};
constexpr Launcher openMpi{"openmpi", "mpiexec.openmpi --allow-run-as-root --oversubscribe -n", "Open MPI",
                           "-H tacc1:2,tacc2:2 --mca plm_rsh_agent {0} --mca oob_tcp_if_include eth0 "
                           "--mca btl_tcp_if_include eth0 --mca pml ob1 --mca btl vader,tcp,self"};

class Launched : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    if (("," + setting("TACC_BENCH_PEERS") + ",").find(fmt::format(",{},", GetParam().peer)) == std::string::npos)
      GTEST_SKIP() << GetParam().peer << " is not here";
  }
  static Outcome run(int ranks, const std::string& arguments) {
    return runLine(fmt::format("{} {} {} {}", GetParam().command, ranks, program(), arguments));
  }
  static const Launcher& other() { return GetParam().peer == mpich.peer ? openMpi : mpich; }
};

TEST_P(Launched, allRanksAreOneJobAndTheLaunchersMpiIsThePeer) {
  const std::string file = fmt::format("{}/{}", ::testing::TempDir(), ::getpid());
  const Outcome outcome = run(
      3, fmt::format("allgather -b 8 -e 40K -f 70 -n 6 --repetitions 2 --peer {} --json {}", GetParam().peer, file));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.count("# summary: 3 ranks, "), 1) << outcome.output;
  EXPECT_TRUE(outcome.has(fmt::format("# one job of all ranks that {} started, on 1 host\n", GetParam().name)));
  EXPECT_EQ(outcome.count("# Out of bounds values : 0 OK"), 1) << outcome.output;
  std::FILE* json = std::fopen(file.c_str(), "r");
  ASSERT_NE(json, nullptr);
  const auto report = nlohmann::json::parse(json);
  std::fclose(json);
  ::unlink(file.c_str());
  EXPECT_EQ(report["launcher"], GetParam().name);
  EXPECT_EQ(report["hosts"].size(), 3U);
  for (const auto& result : report["results"]) {
    EXPECT_EQ(result["wrong"], 0);
    EXPECT_GT(result["peers"][GetParam().peer]["time"], 0);
  }
}

TEST_P(Launched, oneProcessAloneStartsRanksItself) {
  const Outcome outcome = run(1, "allreduce --ranks 2 --size 8 -n 4 --repetitions 1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("# summary: 2 ranks, ")) << outcome.output;
}

TEST_P(Launched, whatMakesNoSenseThereIsSaidOnce) {
  const std::string foreign = fmt::format("--peer {}", other().peer);
  for (const std::string& options : {std::string("--ranks 4"), std::string("--cluster 1,2,0,0"), foreign,
                                     fmt::format("--peer {}+tacc", GetParam().peer)}) {
    const Outcome outcome = run(2, "allreduce --size 8 " + options);
    EXPECT_NE(outcome.status, 0) << options;
    EXPECT_EQ(outcome.count(fmt::format("{} has started all 2 ranks already", GetParam().name)), 1) << outcome.output;
  }
}

TEST_P(Launched, anErrorOfTheLibraryIsSaidOnce) {
  const Outcome outcome = run(2, "allreduce --size 8 --algo nonsense");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.count("tacc_bench: tacc: rank 0: "), 1) << outcome.output;
  EXPECT_EQ(outcome.count("tacc_bench: "), 1) << outcome.output;
}

TEST_P(Launched, anAlgorithmIsForcedInTheCallsThatAreMeasuredAlone) {
  setenv("TACC_ALGO", "ring", 1);  // which serves no broadcast, by which the ranks of a job tell each other things
  const Outcome outcome = run(2, "allreduce --size 64K -n 4 --repetitions 1 --explain");
  unsetenv("TACC_ALGO");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("ring, which was forced")) << outcome.output;
}

TEST_P(Launched, aPeerOfAnotherLibraryIsNoticed) {
  // It takes itself for the one rank of a job.
  const std::filesystem::path folder = fmt::format("{}/peers.{}", ::testing::TempDir(), ::getpid());
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(setting("TACC_BENCH_FAULTY_PEERS") + "/gloo_peer",
                                  folder / (std::string(GetParam().peer) + "_peer"));
  const Outcome outcome =
      run(2, fmt::format("allreduce --size 8 --peer {} --peer-dir {}", GetParam().peer, folder.string()));
  std::filesystem::remove_all(folder);
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(outcome.has("was started for rank 1 takes itself for rank 0")) << outcome.output;
}

TEST_P(Launched, ranksOfSeveralHostsMeetWithoutVariables) {
  const std::string tool = setting("VIRTUAL_CLUSTER_TOOL");
  const std::string words = fmt::format(fmt::runtime(GetParam().hosts), tool + "_rsh");
  // By the launcher's store, and by the MPI that is measured.
  for (const std::string& peer : {std::string(), fmt::format("--peer {}", GetParam().peer)}) {
    const Outcome outcome = runLine(
        fmt::format("{} run --cluster 1,2,0,0 --ranks 1 -- env -u RANK -u WORLD_SIZE UCX_TLS=tcp,sm,self {} 4 {} {} "
                    "allreduce -b 8 -e 4K -f 512 -n 4 --repetitions 2 {}",
                    tool, GetParam().command, words, program(), peer));
    if (outcome.has("no virtual cluster here")) GTEST_SKIP() << outcome.output;
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_TRUE(outcome.has(fmt::format("# one job of all ranks that {} started, on 2 hosts\n", GetParam().name)))
        << outcome.output;
    EXPECT_EQ(outcome.count("# Out of bounds values : 0 OK"), 1) << outcome.output;
  }
}

INSTANTIATE_TEST_SUITE_P(Bench, Launched, testing::Values(mpich, openMpi),
                         [](const auto& instance) { return std::string(instance.param.peer); });

TEST(LaunchedOnHosts, ranksOfAClusterAreOneJob) {
  const Outcome outcome = runLine(
      fmt::format("{} run --cluster 2,2,1000,500 --ranks 4 --place cyclic -- {} allreduce -b 8 -e 4K -f 512 -n 4 "
                  "--repetitions 2",
                  setting("VIRTUAL_CLUSTER_TOOL"), program()));
  if (outcome.has("no virtual cluster here")) GTEST_SKIP() << outcome.output;
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.has("# one job of all ranks that torchrun started, on 4 hosts\n")) << outcome.output;
  EXPECT_EQ(outcome.count("# Out of bounds values : 0 OK"), 1) << outcome.output;
}

}  // namespace
}  // namespace tacc::bench::test
