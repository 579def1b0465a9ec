// Forming a communicator when something is wrong, what it leaves behind, and many ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/membership.hpp"
#include "core/environment.hpp"
#include "fault_team.hpp"
#include "support/child_process.hpp"
#include "transports/shm/node_segment.hpp"

namespace tacc::test {
namespace {

/// Joins and reports how that ended; destroys the communicator if there is one.
void reportInit(const taccUniqueId& id, int ranks, int rank, const taccConfig_t& config, Report& report) {
  taccComm_t comm = nullptr;
  report.start = now();
  report.result = taccCommInitRankConfig(&comm, ranks, id, rank, &config);
  report.end = now();
  report.setMessage(taccGetLastError(nullptr));
  if (comm != nullptr) {
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  }
}

/// Each rank has its own value of a variable that must be equal: all say so.
void expectDisagreement(const char* variable, const std::vector<const char*>& values) {
  const int ranks = static_cast<int>(values.size());
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
    setenv(variable, values[static_cast<std::size_t>(rank)], 1);
    reportInit(id, ranks, rank, configOf(20, 5), report);
  });
  team.join();
  for (int rank = 0; rank < ranks; ++rank) {
    const Report& report = team.report(rank);
    EXPECT_NE(report.result, taccSuccess) << "rank " << rank;
    EXPECT_LT(report.end - report.start, 5) << report.message;
    for (const char* value : values)
      EXPECT_NE(std::string(report.message).find(std::string(variable) + "=" + value), std::string::npos)
          << "rank " << rank << ": " << report.message;
  }
}

TEST(Settings, differentAlgorithms) { expectDisagreement("TACC_ALGO", {"twoshot", "twoshot", "ring"}); }

TEST(Settings, differentChunkSizes) { expectDisagreement("TACC_CHUNK_SIZE", {"128K", "64K"}); }

TEST(Settings, unknownVariableListsAllowedOnes) {
  Team team(2, [](const taccUniqueId& id, int rank, Report& report) {
    setenv("TACC_CHUNKSIZE", "64K", 1);
    reportInit(id, 2, rank, configOf(20, 5), report);
  });
  team.join();
  for (int rank = 0; rank < 2; ++rank) {
    const std::string message = team.report(rank).message;
    EXPECT_EQ(team.report(rank).result, taccInvalidArgument);
    EXPECT_NE(message.find("TACC_CHUNKSIZE"), std::string::npos) << message;
    for (const EnvironmentVariable& variable : environmentVariables())
      EXPECT_NE(message.find(variable.name), std::string::npos) << variable.name << " is not in " << message;
  }
}

TEST(Settings, aMisspeltVariableOnOneRankIsToldToAll) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    if (rank == 1) setenv("TACC_CHUNKSIZE", "64K", 1);
    reportInit(id, 3, rank, configOf(20, 5), report);
  });
  team.join();
  for (int rank = 0; rank < 3; ++rank) {
    const Report& report = team.report(rank);
    EXPECT_NE(report.result, taccSuccess);
    EXPECT_NE(std::string(report.message).find("TACC_CHUNKSIZE"), std::string::npos) << report.message;
    EXPECT_LT(report.end - report.start, 4) << report.message;
  }
}

void expectAbsenceSeen(int absent, double seconds) {
  Team team(
      3, [](const taccUniqueId& id, int rank, Report& report) { reportInit(id, 3, rank, configOf(1, 5), report); },
      absent);
  team.join();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == absent) continue;
    const Report& report = team.report(rank);
    EXPECT_EQ(report.result, taccTimeout) << report.message;
    EXPECT_NE(std::string(report.message).find("rank " + std::to_string(absent)), std::string::npos) << report.message;
    EXPECT_LT(report.end - report.start, seconds) << report.message;
  }
}

TEST(Init, aRankThatNeverComesIsNamed) {
  expectAbsenceSeen(2, 2);
  expectAbsenceSeen(0, 3);
}

TEST(Init, aRankThatDiesMeanwhileIsNamed) {
  Team team(
      3,
      [](const taccUniqueId& id, int rank, Report& report) {
        report.stage = 1;
        reportInit(id, 3, rank, configOf(rank == 2 ? 20 : 1.5, 5), report);
      },
      1);
  team.awaitStage(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  team.signal(2, SIGKILL);
  team.join(2);
  EXPECT_NE(team.report(0).result, taccSuccess);
  EXPECT_LT(team.report(0).end - team.report(0).start, 3);
}

/// Under a launcher the ranks derive the id from how many communicators they have made. Attempts that failed, here one
/// of rank 1 and three of rank 0, are none.
TEST(Init, RanksThatFailedAtDifferentTimesMeetWhenTheyTryAgain) {
  const Signal failed;
  const Signal ready;
  Team team(2, [&](const taccUniqueId&, int rank, Report& report) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) ::setenv(name, "2", 1);
    ::setenv("TORCHELASTIC_RUN_ID", ("test of " + std::to_string(::getppid())).c_str(), 1);
    taccConfig_t config = configOf(0.1, 20);
    taccComm_t comm = nullptr;
    if (rank == 0) failed.await();
    for (int attempt = 0; attempt < (rank == 0 ? 3 : 1); ++attempt)
      EXPECT_EQ(taccCommInitEnv(&comm, &config), taccTimeout);
    report.setMessage(taccGetLastError(nullptr));
    if (rank == 1) failed.give();
    if (rank == 0) ready.give();
    if (rank == 1) ready.await();
    config = configOf(20, 20);
    for (int number = 0; number < 2; ++number) {
      EXPECT_EQ(taccCommInitEnv(&comm, &config), taccSuccess) << taccGetLastError(nullptr);
      if (comm == nullptr) return;
      EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess);
      EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    }
  });
  team.join();
  EXPECT_NE(std::string(team.report(0).message).find("after this rank had made 0 others so"), std::string::npos)
      << team.report(0).message;
}

std::set<std::string> sharedFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.insert(entry.path().filename());
  return names;
}

/// One communicator's life with private and library memory, small and large.
void useCommunicator(const taccUniqueId& id, int ranks, int rank, int victim, Report& report) {
  taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, 60));
  if (comm == nullptr) return;
  constexpr std::size_t count = 1 << 19;
  void* library = nullptr;
  EXPECT_EQ(taccMemAlloc(&library, count * sizeof(float)), taccSuccess);
  std::vector<float> own(count);
  EXPECT_EQ(taccAllReduce(own.data(), own.data(), 3, taccFloat32, taccSum, comm, nullptr), taccSuccess);
  EXPECT_EQ(taccAllReduce(own.data(), own.data(), count, taccFloat32, taccSum, comm, nullptr), taccSuccess);
  EXPECT_EQ(taccAllReduce(library, library, count, taccFloat32, taccSum, comm, nullptr), taccSuccess);
  if (rank == victim) waitToBeKilled(report);
  const taccResult_t last = taccAllReduce(library, library, count, taccFloat32, taccSum, comm, nullptr);
  EXPECT_EQ(last, victim < 0 ? taccSuccess : taccRemoteError) << taccGetLastError(comm);
  EXPECT_EQ(taccMemFree(library), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

/// Descriptors must be as many as before in every survivor, and /dev/shm must hold nothing new.
void expectNothingLeft(int victim, const char* source) {
  const std::set<std::string> before = sharedFiles();
  taccUniqueId ids[3];
  for (taccUniqueId& id : ids) ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  Team team(3, [&](const taccUniqueId& id, int rank, Report& report) {
    setenv("TACC_SHM", source, 1);
    useCommunicator(ids[0], 3, rank, -1, report);  // opens what a thread opens once
    int descriptors = countOpenDescriptors();
    // The reservation of the id's port, which this process has from its parent, ends where rank 0 has listened there.
    const int reserved = rank == 0 ? 1 : 0;
    for (const taccUniqueId& one : {ids[1], ids[2]}) {
      useCommunicator(one, 3, rank, -1, report);
      EXPECT_EQ(countOpenDescriptors(), descriptors -= reserved);
    }
    useCommunicator(id, 3, rank, victim, report);
    EXPECT_EQ(countOpenDescriptors(), descriptors - reserved);
  });
  if (victim >= 0) {
    const double deadline = now() + 20;
    while (team.report(victim).stage < 1 && now() < deadline) usleep(1000);
    usleep(300'000);
    team.signal(victim, SIGKILL);
  }
  team.join(victim);
  std::set<std::string> after = sharedFiles();
  for (const std::string& name : before) after.erase(name);
  EXPECT_TRUE(after.empty()) << "/dev/shm has " << *after.begin();
}

TEST(Leaks, none) { expectNothingLeft(-1, "memfd"); }
TEST(Leaks, noneWithFiles) { expectNothingLeft(-1, "file"); }
TEST(Leaks, noneWhenARankIsKilled) { expectNothingLeft(1, "memfd"); }
TEST(Leaks, noneWithFilesWhenARankIsKilled) { expectNothingLeft(1, "file"); }

/// With room for so many pages in /dev/shm: false where there can be no /dev/shm of one's own.
bool mountShm(std::size_t pages) {
  if (::mount("tmpfs", "/dev/shm", "tmpfs", 0,
              fmt::format("size={}", std::max<std::size_t>(pages, 1) * pageBytes).c_str()) != 0)
    return false;
  // No limit is what a size of 0 would mean.
  if (pages == 0) std::ofstream("/dev/shm/full") << std::string(pageBytes, 'x');
  return true;
}

TEST(Init, ADevShmThatIsTooSmallIsToldByAllWhereverItEnds) {
  constexpr int ranks = 3, unavailable = 77;
  ChildProcess apart([] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      ::_exit(unavailable);
    ::setenv("TACC_SHM", "file", 1);
    const std::size_t enough = NodeSegment::bytesFor(chooseGeometry(ranks, Environment())) / pageBytes + 8;
    std::vector<std::size_t> rooms = {0, 1, 2, 3, 4, 5, 6, 7, 8, enough};
    std::mt19937 draw(20261130);
    for (int i = 0; i < 12; ++i) rooms.push_back(1 + draw() % (enough - 1));
    for (const std::size_t pages : rooms) {
      if (!mountShm(pages)) ::_exit(unavailable);
      Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
        reportInit(id, ranks, rank, configOf(20, 5), report);
      });
      team.join();
      for (int rank = 0; rank < ranks; ++rank) {
        const Report& report = team.report(rank);
        const std::string message = report.message;
        if (pages == enough) {
          EXPECT_EQ(report.result, taccSuccess) << message;
          continue;
        }
        EXPECT_NE(message.find("shared memory for node is exhausted"), std::string::npos)
            << pages << " pages, rank " << rank << ": " << report.result << " " << message;
        EXPECT_LT(report.end - report.start, 15) << message;  // and not until the time-out of joining
      }
      ::umount("/dev/shm");
    }
    return !testing::Test::HasFailure();
  });
  const int status = apart.wait();
  if (status == unavailable)
    GTEST_SKIP() << "this user may not mount a /dev/shm of its own, which only a new mount namespace makes harmless";
  EXPECT_EQ(status, 0);
}

TEST(ManyRanks, sixtyFour) {
  constexpr int ranks = 64;
  const std::size_t perRank = NodeSegment::bytesFor(chooseGeometry(ranks, Environment{})) / ranks;
  EXPECT_LT(perRank, std::size_t{16} << 20);
  Team team(ranks, [](const taccUniqueId& id, int rank, Report& report) {
    report.start = now();
    taccComm_t comm = joinTeam(id, ranks, rank, configOf(60, 120));
    report.end = now();
    if (comm == nullptr) return;
    for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 18}) {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank + static_cast<int>(i % 7));
      EXPECT_EQ(taccAllReduce(values.data(), values.data(), count, taccFloat32, taccSum, comm, nullptr), taccSuccess)
          << taccGetLastError(comm);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i)
        wrong += values[i] == static_cast<float>(ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i % 7)) ? 0 : 1;
      EXPECT_EQ(wrong, 0U) << "rank " << rank << ", count " << count;
    }
    EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess) << taccGetLastError(comm);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, 100);
  double first = team.report(0).start, last = 0, longest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Report& report = team.report(rank);
    first = std::min(first, report.start);
    last = std::max(last, report.end);
    longest = std::max(longest, report.end - report.start);
  }
  std::printf("64 ranks: the slowest init took %.3f s, all together %.3f s; %zu KiB shared per rank\n", longest,
              last - first, perRank / 1024);
  EXPECT_LT(longest, 10);
}

}  // namespace
}  // namespace tacc::test
