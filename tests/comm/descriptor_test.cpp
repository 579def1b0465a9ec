// Ranks that run out of descriptors: whoever is short is named, on all ranks, and nobody waits for the time-out. And
// how many descriptors a communicator keeps.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fault_team.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

constexpr double initTimeout = 30;
constexpr double callTimeout = 30;
constexpr double bound = 12;  // seconds: well below the time-outs, on a loaded machine
constexpr int mostLeft = 20;
constexpr std::size_t largeCount = std::size_t{1} << 20;

/// Takes every descriptor that this process may have but `left`.
void leaveDescriptors(int left) {
  const rlimit limit{256, 256};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<int> taken;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
  for (int i = 0; i < left && !taken.empty(); ++i) {
    ::close(taken.back());
    taken.pop_back();
  }
}

enum class Stage { init, split, libraryMemory };

constexpr const char* nameOf(Stage stage) {
  return stage == Stage::init ? "init" : stage == Stage::split ? "split" : "library memory";
}

taccResult_t runStage(Stage stage, taccComm_t comm, void* memory) {
  if (stage == Stage::libraryMemory)
    return taccAllReduce(memory, memory, largeCount, taccFloat32, taccSum, comm, nullptr);
  taccComm_t child = nullptr;
  const taccResult_t result = taccCommSplit(comm, 0, 0, &child, nullptr);
  if (child != nullptr) {
    EXPECT_EQ(taccCommDestroy(child), taccSuccess);
  }
  return result;
}

/// One rank's part: at `stage` the victim has `left` descriptors.
void runRank(Stage stage, const taccUniqueId& id, int ranks, int rank, int victim, int left, Report& report) {
  const taccConfig_t config = configOf(initTimeout, callTimeout);
  taccComm_t comm = nullptr;
  if (stage == Stage::init) {
    if (rank == victim) leaveDescriptors(left);
    report.start = now();
    report.result = taccCommInitRankConfig(&comm, ranks, id, rank, &config);
    report.end = now();
    report.setMessage(taccGetLastError(nullptr));
  } else {
    comm = joinTeam(id, ranks, rank, config);
    if (comm == nullptr) return;
    void* memory = nullptr;
    EXPECT_EQ(taccMemAlloc(&memory, largeCount * sizeof(float)), taccSuccess);
    if (rank == victim) leaveDescriptors(left);
    EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess);
    report.start = now();
    report.result = runStage(stage, comm, memory);
    report.end = now();
    report.setMessage(taccGetLastError(comm));
    EXPECT_EQ(taccMemFree(memory), taccSuccess);
  }
  report.stage = 2;
  if (comm != nullptr) (void)taccCommDestroy(comm);
}

struct Found {
  int enough;      // descriptors, from which on all goes well
  double longest;  // seconds until a rank had its Error
};

Found expectEndsOnAll(Stage stage, bool oneHost, unsigned seed) {
  std::mt19937 draw(seed);
  Found found{mostLeft + 1, 0};
  for (int left = mostLeft; left >= 0; --left) {
    const int ranks = 2 + static_cast<int>(draw() % 3);
    const int victim = left % 2 == 0 ? 0 : static_cast<int>(draw() % static_cast<unsigned>(ranks));
    SCOPED_TRACE(std::string(nameOf(stage)) + (oneHost ? "" : " over TCP") + ", seed " + std::to_string(seed) + ": " +
                 std::to_string(ranks) + " ranks, rank " + std::to_string(victim) + " has " + std::to_string(left) +
                 " descriptors left");
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      if (!oneHost) {
        ::setenv("TACC_SHM", "off", 1);
        ::setenv("TACC_TRANSPORT", "tcp", 1);
      }
      runRank(stage, id, ranks, rank, victim, left, report);
    });
    team.join(-1, initTimeout + 10);
    const bool succeeds = team.report(0).result == taccSuccess;
    if (succeeds) found.enough = left;
    for (int rank = 0; rank < ranks; ++rank) {
      const Report& report = team.report(rank);
      EXPECT_EQ(report.stage, 2) << "rank " << rank;
      EXPECT_EQ(report.result == taccSuccess, succeeds) << "rank " << rank << ": " << report.message;
      EXPECT_LT(report.end - report.start, bound) << "rank " << rank << ": " << report.message;
      if (report.result == taccSuccess) continue;
      found.longest = std::max(found.longest, report.end - report.start);
      EXPECT_NE(std::strstr(report.message, "Too many open files"), nullptr)
          << "rank " << rank << ": " << report.message;
      if (rank == victim) continue;
      const std::string name = "rank " + std::to_string(victim);
      EXPECT_NE(std::strstr(report.message, name.c_str()), nullptr) << "rank " << rank << ": " << report.message;
    }
  }
  return found;
}

unsigned drawSeed() {
  const char* given = std::getenv("TACC_TEST_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20261123U;
}

void expectStage(Stage stage, bool oneHost) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UBSan reads an object's vptr through a pipe, and has no descriptors left for it";
#endif
  const int rounds = isQuick() ? 1 : 3;
  for (int round = 0; round < rounds; ++round) {
    const unsigned seed = drawSeed();
    const Found found = expectEndsOnAll(stage, oneHost, seed);
    std::printf("%s%s: seed %u, %d descriptors are enough; else all had an error after %.2f s at most\n", nameOf(stage),
                oneHost ? "" : " over TCP", seed, found.enough, found.longest);
    EXPECT_LE(found.enough, mostLeft);
  }
}

TEST(DescriptorShortage, AtInitIsToldToAll) { expectStage(Stage::init, true); }
TEST(DescriptorShortage, AtInitOverTcpIsToldToAll) { expectStage(Stage::init, false); }
TEST(DescriptorShortage, AtSplitIsToldToAll) { expectStage(Stage::split, true); }
TEST(DescriptorShortage, OnLibraryMemoryIsToldToAll) { expectStage(Stage::libraryMemory, true); }

/// Of what a process keeps for each communicator: what 20 more of them take.
TEST(DescriptorsOfACommunicator, AreFew) {
  constexpr int ranks = 2;
  constexpr int communicators = 20;
  std::vector<taccUniqueId> ids(communicators);
  for (taccUniqueId& id : ids) ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
    std::vector<taccComm_t> comms{joinTeam(id, ranks, rank, configOf(initTimeout, callTimeout))};
    ASSERT_NE(comms[0], nullptr);
    const int before = countOpenDescriptors();
    for (const taccUniqueId& one : ids) comms.push_back(joinTeam(one, ranks, rank, configOf(initTimeout, callTimeout)));
    const int joined = countOpenDescriptors();
    for (int i = 0; i < communicators; ++i) {
      comms.push_back(nullptr);
      EXPECT_EQ(taccCommSplit(comms[0], 0, 0, &comms.back(), nullptr), taccSuccess) << taccGetLastError(comms[0]);
    }
    const int split = countOpenDescriptors();
    report.value = (joined - before) / static_cast<double>(communicators);
    report.laterSeconds = (split - joined) / static_cast<double>(communicators);
    for (taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, 60);
  for (int rank = 0; rank < ranks; ++rank) {
    const Report& report = team.report(rank);
    std::printf("rank %d of %d: a communicator of its own takes %.2f descriptors, a child %.2f\n", rank, ranks,
                report.value, report.laterSeconds);
    EXPECT_LE(report.value, 2);
    EXPECT_EQ(report.laterSeconds, 0);
  }
}

/// What has the number of a standard stream that is closed; "" where nothing has.
std::string openedAs(int fd) {
  char target[256];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
  return length < 0 ? "" : std::string(target, static_cast<std::size_t>(length));
}

/// What a rank without some standard streams finds at their numbers after each thing that it does, printing all the
/// while; "" where nothing is there, and all goes well.
std::string liveWithout(const std::vector<int>& closed, const taccUniqueId& id, int ranks, int rank) {
  std::string found;
  const auto look = [&](const std::string& what, taccResult_t result) {
    if (result != taccSuccess) found += what + ": " + taccGetLastError(nullptr) + "; ";
    for (const int fd : closed) {
      if (const std::string there = openedAs(fd); !there.empty())
        found += what + " leaves " + there + " at " + std::to_string(fd) + "; ";
      constexpr char line[] = "a line that was meant for a person";
      [[maybe_unused]] const ssize_t written = ::write(fd, line, sizeof line);
    }
  };
  taccComm_t comm = nullptr;
  const taccConfig_t config = configOf(initTimeout, callTimeout);
  look("init", taccCommInitRankConfig(&comm, ranks, id, rank, &config));
  if (comm == nullptr) return found;
  const auto sum = [&](const std::string& what, taccComm_t on) {
    std::vector<float> ones(largeCount, 1);
    look("allreduce " + what, taccAllReduce(ones.data(), ones.data(), largeCount, taccFloat32, taccSum, on, nullptr));
    if (ones.back() != static_cast<float>(ranks)) found += "a wrong sum " + what + "; ";
    look("barrier " + what, taccBarrier(on, nullptr));
  };
  sum("of all", comm);
  void* memory = nullptr;
  look("library memory", taccMemAlloc(&memory, largeCount * sizeof(float)));
  look("allreduce of it", taccAllReduce(memory, memory, largeCount, taccFloat32, taccSum, comm, nullptr));
  taccComm_t part = nullptr, rest = nullptr;
  look("split", taccCommSplit(comm, 0, 0, &part, nullptr));
  if (part != nullptr) sum("of a part", part);
  int flags = 1;
  look("agree", taccCommAgree(comm, &flags));
  look("shrink", taccCommShrink(comm, nullptr, 0, &rest, nullptr, 0));
  if (rest != nullptr) sum("of the rest", rest);
  for (taccComm_t one : {rest, part, comm})
    if (one != nullptr) look("destroy", taccCommDestroy(one));
  return found;
}

void expectNothingAtStandardStreams(bool oneHost) {
  std::mt19937 draw(drawSeed());
  for (unsigned which = 1; which < 8; ++which) {  // of 0, 1 and 2
    const int ranks = 2 + static_cast<int>(draw() % 2);
    const auto victim = static_cast<int>(draw() % static_cast<unsigned>(ranks));
    const bool all = draw() % 2 == 0;
    Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
      if (!oneHost) {
        ::setenv("TACC_SHM", "off", 1);
        ::setenv("TACC_TRANSPORT", "tcp", 1);
      }
      std::vector<int> closed, kept;
      for (int fd = 0; fd < 3; ++fd)
        if ((which >> fd & 1) != 0 && (all || rank == victim)) closed.push_back(fd);
      for (const int fd : closed) {
        kept.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
        ::close(fd);
      }
      const std::string found = liveWithout(closed, id, ranks, rank);
      for (std::size_t i = 0; i < closed.size(); ++i) ::dup2(kept[i], closed[i]);
      report.setMessage(found.c_str());
    });
    team.join(-1, initTimeout + 10);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_STREQ(team.report(rank).message, "") << "rank " << rank << " of " << ranks << ", without " << which;
  }
}

/// Files of a program, in the lowest numbers that are free.
class ProgramFiles {
 public:
  void open() {
    for (auto& [fd, inode] : files_) {
      fd = ::memfd_create("of the program", 0);
      inode = inodeOf(fd);
    }
  }
  void expectAll(int rank) const {
    for (const auto& [fd, inode] : files_) EXPECT_EQ(inodeOf(fd), inode) << "rank " << rank << " has lost " << fd;
  }

 private:
  /// 0: the descriptor is closed.
  static ino_t inodeOf(int fd) {
    struct stat found {};
    return ::fstat(fd, &found) == 0 ? found.st_ino : 0;
  }

  std::vector<std::pair<int, ino_t>> files_{20};
};

void closeAll() { ASSERT_EQ(::close_range(STDERR_FILENO + 1, ~0U, 0), 0); }

/// A program that becomes a daemon closes all descriptors, of which it then opens those that it needs.
TEST(Daemons, KeepTheFilesThatTheyOpenedInTheNumbersOfSpares) {
  constexpr int ranks = 2;
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report& report) {
    closeAll();
    ProgramFiles files;
    files.open();
    const taccConfig_t config = configOf(initTimeout, callTimeout);
    reportCall(
        joinTeam(id, ranks, rank, config), rank, [](taccComm_t comm, int) { return taccBarrier(comm, nullptr); },
        report);
    EXPECT_EQ(report.result, taccSuccess) << report.message;
    files.expectAll(rank);
  });
  team.join();
}

TEST(Daemons, KeepTheFilesThatTheyOpenedInTheNumbersOfACommunicator) {
  constexpr int ranks = 2;
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report&) {
    const taccComm_t comm = joinTeam(id, ranks, rank, configOf(initTimeout, callTimeout));
    std::vector<float> mine(largeCount), all(ranks * largeCount);
    for (int i = 0; i < 20; ++i)  // enough to have pipes
      ASSERT_EQ(taccAllGather(mine.data(), all.data(), largeCount, taccFloat32, comm, nullptr), taccSuccess)
          << taccGetLastError(comm);
    closeAll();
    ProgramFiles files;
    files.open();
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    files.expectAll(rank);
    const pid_t child = ::fork();
    if (child == 0) {
      files.expectAll(rank);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a child of rank " << rank;
  });
  team.join();
}

TEST(StandardStreams, AreLeftAlone) { expectNothingAtStandardStreams(true); }
TEST(StandardStreams, AreLeftAloneOverTcp) { expectNothingAtStandardStreams(false); }

}  // namespace
}  // namespace tacc::test
