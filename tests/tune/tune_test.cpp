// tacc_tune as people use it, and what communicators make of its files.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rank_harness.hpp"
#include "selection/tuning/tuning_file.hpp"
#include "support/run_program.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Ran run(const std::string& arguments, const std::string& environment = "") {
  return runProgram(TACC_TEST_TUNE, arguments, environment);
}

class Tune : public testing::Test {
 protected:
  Tune() {
    char name[] = "/tmp/tacc_tune_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Tune() override { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const Tuning& tuning) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name)) << tuningToToml(tuning);
    return file(name);
  }
  Tuning read(const std::string& name) const {
    std::ifstream in(file(name));
    std::ostringstream text;
    text << in.rdbuf();
    return tuningFromToml(text.str(), name);
  }

  std::string path_;
};

/// Two hosts with one rank each, on an unlimited network of any speed.
Tuning forTwoHosts(double bytesPerSecond) {
  Tuning tuning;
  CostMachine machine;
  machine.ranks = 2;
  machine.levels.push_back({.begins = {0}});
  tuning.place = {ownVersion(), "tcp", layoutDigest(machine), false, {1, 1}, {1e-5, bytesPerSecond}};
  tuning.add(Collective::allReduce, {4096, "twoshot", 1e-4, "ring", 2e-4, "ring", 2e-4});
  tuning.add(Collective::allToAll, {4096, "oneshot", 1e-4, "", 0, "oneshot", 1e-4});
  return tuning;
}

Tuning forNode(int ranks) {
  Tuning tuning;
  CostMachine machine;
  machine.levels.push_back({.begins = {0}});
  tuning.place = {ownVersion(), "shm", layoutDigest(machine), false, {ranks}, {0, 0}};
  tuning.add(Collective::allReduce, {64, "ring", 1e-6, "eager", 2e-6, "eager", 2e-6});
  tuning.add(Collective::allReduce, {1 << 20, "recursive_doubling", 1e-4, "", 0, "twoshot", 2e-4});
  return tuning;
}

std::string lastOf(taccComm_t comm, std::size_t floats) {
  std::vector<float> data(floats, 1.0F);
  EXPECT_EQ(taccAllReduce(data.data(), data.data(), floats, taccFloat32, taccSum, comm, nullptr), taccSuccess)
      << taccGetLastError(comm);
  int ranks = 0;
  taccCommCount(comm, &ranks);
  EXPECT_EQ(data.front(), static_cast<float>(ranks));
  EXPECT_EQ(data.back(), static_cast<float>(ranks));
  return taccCommLastAlgorithm(comm);
}

TEST_F(Tune, MeasuresInsideAHostAndTheLibraryUsesIt) {
  const Ran ran =
      run("allreduce --ranks 2 --sizes 64,1M --budget 0.02 --output " + file("t.toml") + " --json " + file("t.json"));
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("2 ranks on 1 host, shm"), HasSubstr("within 10 % at")));
  EXPECT_FALSE(std::filesystem::exists(file("t.toml.part")));
  EXPECT_TRUE(std::filesystem::exists(file("t.json")));
  const Tuning tuning = read("t.toml");
  ASSERT_EQ(tuning.collectives.size(), 1u);
  ASSERT_EQ(tuning.collectives[0].sizes.size(), 2u);
  for (const TunedSize& size : tuning.collectives[0].sizes) {
    EXPECT_GT(size.seconds, 0);
    EXPECT_GT(size.nextSeconds, 0);
    EXPECT_TRUE(size.algorithm == size.untuned || size.seconds < size.untunedSeconds) << "nothing is gained else";
  }
  setenv("TACC_TUNE_FILE", file("t.toml").c_str(), 1);
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int) {
    EXPECT_THAT(taccExplain(comm, "allreduce", 1 << 20), HasSubstr("tuning file " + file("t.toml")));
    EXPECT_EQ(lastOf(comm, 1 << 18), tuning.collectives[0].sizes[1].algorithm);
  });
  unsetenv("TACC_TUNE_FILE");
}

TEST_F(Tune, GoesOnWhereItStopped) {
  ASSERT_EQ(run("allreduce --ranks 2 --sizes 64 --budget 0.01 --output " + file("t.toml")).status, 0);
  Tuning tuning = read("t.toml");
  tuning.collectives[0].sizes[0].seconds = 0.125;  // no measurement gives this
  write("t.toml.part", tuning);
  std::filesystem::remove(file("t.toml"));
  const std::string again = "allreduce --ranks 2 --sizes 64,512 --budget 0.01 --output " + file("t.toml");
  ASSERT_EQ(run(again).status, 0);
  EXPECT_DOUBLE_EQ(read("t.toml").collectives[0].sizes[0].seconds, 0.125);
  EXPECT_EQ(read("t.toml").collectives[0].sizes.size(), 2u);
  ASSERT_EQ(run(again + " --restart").status, 0);
  EXPECT_LT(read("t.toml").collectives[0].sizes[0].seconds, 0.1);

  tuning.place.ranksOfHost = {3};
  write("t.toml.part", tuning);
  const Ran foreign = run(again);
  EXPECT_EQ(foreign.status, 1);
  EXPECT_THAT(foreign.output, AllOf(HasSubstr("3 ranks on one host"), HasSubstr("--restart")));
}

TEST_F(Tune, SaysWhatIsWrongWithItsArguments) {
  EXPECT_THAT(run("allreduce --output /no/such/folder/tune.toml").output, HasSubstr("cannot write /no/such/folder/"));
  EXPECT_THAT(run("allreduce --json /no/such/folder/tune.json").output, HasSubstr("cannot write /no/such/folder/"));
  EXPECT_THAT(run("allreduce --regret --regrets /no/such/folder/all").output,
              HasSubstr("cannot write /no/such/folder/all"));
  EXPECT_EQ(run("conv --net lenet --out /no/such/folder/conv.toml").output,
            "tacc_tune: cannot write /no/such/folder/conv.toml\n");  // and no layer, as it says so before it measures
  EXPECT_THAT(run("allreduced").output, HasSubstr("there is no collective \"allreduced\"; there are allreduce"));
  EXPECT_EQ(run("allreduced").status, 2);
  EXPECT_THAT(run("--sizes 0").output, HasSubstr("at least 1 byte"));
  EXPECT_THAT(run("--ranks 2", "RANK=0 WORLD_SIZE=1").output, HasSubstr("a launcher has started this one"));
  EXPECT_THAT(run("allreduce --ranks 2 --sizes 8", "TACC_ALGO=ring").output, HasSubstr("TACC_ALGO=ring"));
}

TEST_F(Tune, TakesPartUnderALauncher) {
  const Ran ran = run("allreduce --sizes 64 --budget 0.01 --output " + file("t.toml"), "RANK=0 WORLD_SIZE=1");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1 rank on 1 host"));
}

TEST_F(Tune, NodesAndThreadsFollowTheFile) {
  const std::string path = write("n.toml", forNode(2));
  setenv("TACC_TUNE_FILE", path.c_str(), 1);
  for (const RankKind kind : {RankKind::processes, RankKind::threads})
    runRanks(kind, 2, [&](taccComm_t comm, int rank) {
      EXPECT_EQ(lastOf(comm, 16), "ring");
      EXPECT_EQ(lastOf(comm, 1 << 18), "recursive_doubling");
      EXPECT_EQ(lastOf(comm, 1 << 12), "recursive_doubling") << "the nearest by ratio";
      EXPECT_EQ(lastOf(comm, 4), "eager") << "too far from the smallest";
      // The file is not meant for a part.
      taccComm_t part = nullptr;
      ASSERT_EQ(taccCommSplit(comm, rank, 0, &part, nullptr), taccSuccess) << taccGetLastError(comm);
      EXPECT_THAT(taccExplain(part, "allreduce", 64), Not(HasSubstr("tuning file")));
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    });
  unsetenv("TACC_TUNE_FILE");
}

TEST_F(Tune, AForcedAlgorithmIsStronger) {
  setenv("TACC_TUNE_FILE", write("n.toml", forNode(2)).c_str(), 1);
  setenv("TACC_ALGO", "twoshot", 1);
  runRanks(RankKind::processes, 2, [&](taccComm_t comm, int) { EXPECT_EQ(lastOf(comm, 16), "twoshot"); });
  unsetenv("TACC_ALGO");
  unsetenv("TACC_TUNE_FILE");
}

class TuneCluster : public Tune {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(TuneCluster, MeasuresTheRegretOfFreeCallsInSeveralPlacements) {
  const Ran ran =
      run("allreduce broadcast --cluster 2,2,200,200 --sizes 64,64K --budget 0.02 --regret --place block,cyclic");
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("# ranks placed block"), HasSubstr("# ranks placed cyclic"),
                    HasSubstr("# chosen freely: "), HasSubstr("# all placements: "), HasSubstr("of 8 points")));
  EXPECT_EQ(run("--regret --output " + file("t.toml")).status, 2);
  EXPECT_THAT(run("--cluster 2,2,0,0 --place block,cyclic").output, HasSubstr("with --regret only"));
}

TEST_F(TuneCluster, MeasuresBetweenHostsAndTheLibraryUsesIt) {
  const Ran ran =
      run("allreduce alltoall --cluster 1,2,200,200 --sizes 64,64K --budget 0.02 --output " + file("t.toml"));
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("2 ranks on 2 hosts, tcp"));
  const Tuning tuning = read("t.toml");
  ASSERT_EQ(tuning.collectives.size(), 2u);
  const VirtualCluster cluster(1, 2, 200, 200);
  runOnHosts(
      cluster, {1, 2},
      [&](taccComm_t comm, int) {
        for (const TunedSize& size : tuning.collectives[0].sizes)
          EXPECT_EQ(lastOf(comm, size.bytes / 4), size.algorithm);
        EXPECT_THAT(taccExplain(comm, "allreduce", 64), HasSubstr("tuning file " + file("t.toml")));
        EXPECT_THAT(taccExplain(comm, "alltoall", 64), HasSubstr("tuning file"));
        EXPECT_THAT(taccExplain(comm, "broadcast", 64), Not(HasSubstr("tuning file")));
      },
      TACC_CONFIG_INITIALIZER, [&](int) { setenv("TACC_TUNE_FILE", file("t.toml").c_str(), 1); });
  // A third host: it is not for these.
  const auto errors = initErrorsOnHosts(VirtualCluster(1, 3, 200, 200), {1, 2, 3},
                                        [&](int) { setenv("TACC_TUNE_FILE", file("t.toml").c_str(), 1); });
  for (const std::string& error : errors)
    EXPECT_THAT(error, AllOf(HasSubstr(file("t.toml")), HasSubstr("2 hosts with 1 rank each"),
                             HasSubstr("3 hosts with 1 rank each")));
}

TEST_F(TuneCluster, WhatDoesNotFitIsAnErrorIfItIsNamedElseItIsLeftOut) {
  const VirtualCluster cluster(1, 2);
  Tuning stale = forTwoHosts(1e9);
  stale.place.version = "0.0.9";
  const std::string path = write("config/tacc/tune.toml", stale);
  const auto named = initErrorsOnHosts(cluster, {1, 2}, [&](int) { setenv("TACC_TUNE_FILE", path.c_str(), 1); });
  for (const std::string& error : named) EXPECT_THAT(error, AllOf(HasSubstr("0.0.9"), HasSubstr(ownVersion())));
  const auto found = [&](int) { setenv("XDG_CONFIG_HOME", file("config").c_str(), 1); };
  const auto isNotUsed = [](taccComm_t comm, int) {
    EXPECT_THAT(taccExplain(comm, "allreduce", 4096), Not(HasSubstr("tuning file")));
  };
  runOnHosts(cluster, {1, 2}, isNotUsed, TACC_CONFIG_INITIALIZER, found);
  std::ofstream(path) << "damaged";
  runOnHosts(cluster, {1, 2}, isNotUsed, TACC_CONFIG_INITIALIZER, found);
}

TEST_F(TuneCluster, HostsMustHaveTheSame) {
  const VirtualCluster cluster(1, 2);
  const std::string one = write("one.toml", forTwoHosts(1e9)), other = write("other.toml", forTwoHosts(2e9));
  const auto errors = initErrorsOnHosts(
      cluster, {1, 2}, [&](int rank) { setenv("TACC_TUNE_FILE", (rank == 0 ? one : other).c_str(), 1); });
  for (const std::string& error : errors) EXPECT_THAT(error, AllOf(HasSubstr(one), HasSubstr(other)));
  const auto missing = initErrorsOnHosts(cluster, {1, 2}, [&](int rank) {
    if (rank == 1) setenv("TACC_TUNE_FILE", file("nowhere.toml").c_str(), 1);
  });
  for (const std::string& error : missing) EXPECT_THAT(error, HasSubstr("nowhere.toml"));
}

}  // namespace
}  // namespace tacc::test
