// Many drawn programs that are correct, on ranks that drift apart: every call must end, and with its own result.
//
//   TACC_TEST_PROGRAMS=10000   so many programs instead of 200
//   TACC_TEST_CALLS=10000000   so many calls on one communicator instead of 20,000
//   TACC_TEST_SEED=1           the seed of the first program instead of 0; later ones count on
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "drawn_program.hpp"
#include "id_pipe.hpp"
#include "rank_harness.hpp"
#include "support/child_process.hpp"
#include "support/settings.hpp"

namespace tacc::test {
namespace {

constexpr double patience = 120;  // seconds that a call may wait: a hang, and not a loaded machine

std::uint64_t shortened(std::uint64_t usual) { return isQuick() ? usual / 10 : usual; }
std::uint64_t firstSeed() { return numberFrom<std::uint64_t>("TACC_TEST_SEED", 0); }

/// Seeds of programs, one after the other.
struct Range {
  std::uint64_t begin, end;
};

/// Some programs in one communicator, as many as are drawn for it; advances `next`. "" or what was wrong.
std::string runSome(Range& range, taccComm_t comm, int rank, int ranks, DrawnBuffers& buffers) {
  const std::uint64_t most = 1 + range.begin * 7 % 6;
  for (std::uint64_t i = 0; i < most && range.begin < range.end; ++i, ++range.begin) {
    const std::string wrong =
        runProgram(drawProgram(range.begin, ranks), range.begin, Pace::drifting, comm, rank, ranks, buffers);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

bool report(const std::string& wrong) {
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  return wrong.empty();
}

/// One process per rank, and one communicator after the other among them.
bool runProcess(Range range, int rank, int ranks, const IdPipe& ids) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.operationTimeout = patience;
  DrawnBuffers buffers(ranks);
  while (range.begin < range.end) {
    taccComm_t comm = nullptr;
    if (taccCommInitRankConfig(&comm, ranks, ids.pass(ranks, rank), rank, &config) != taccSuccess)
      return report(taccGetLastError(nullptr));
    if (!report(runSome(range, comm, rank, ranks, buffers))) return false;
    if (taccCommDestroy(comm) != taccSuccess) return report("destroy has failed");
  }
  return true;
}

void runProcesses(const Range& range, int ranks) {
  const IdPipe ids;
  std::fflush(nullptr);
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < ranks; ++rank)
    children.emplace_back([&, rank] { return runProcess(range, rank, ranks, ids); });
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}

void runThreads(Range range, int ranks) {
  std::vector<std::unique_ptr<DrawnBuffers>> buffers;
  for (int rank = 0; rank < ranks; ++rank) buffers.push_back(std::make_unique<DrawnBuffers>(ranks));
  while (range.begin < range.end && !testing::Test::HasFailure()) {
    std::vector<taccComm_t> comms(static_cast<std::size_t>(ranks));
    ASSERT_EQ(taccCommInitAll(comms.data(), ranks, nullptr), taccSuccess) << taccGetLastError(nullptr);
    std::vector<Range> ranges(comms.size(), range);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const auto i = static_cast<std::size_t>(rank);
        EXPECT_EQ(runSome(ranges[i], comms[i], rank, ranks, *buffers[i]), "");
      });
    for (std::thread& thread : threads) thread.join();
    for (taccComm_t comm : comms) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    range = ranges.front();
  }
}

class Drift : public testing::TestWithParam<int> {
 protected:
  /// An eighth of the programs: there are four numbers of ranks and two kinds. `part`: which one.
  static Range programs(int part) {
    const std::uint64_t each = std::max<std::uint64_t>(1, numberFrom("TACC_TEST_PROGRAMS", shortened(200)) / 8);
    const std::uint64_t begin = firstSeed() + static_cast<std::uint64_t>(part) * each;
    std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(begin),
                static_cast<unsigned long long>(begin + each - 1));
    return {begin, begin + each};
  }
};

TEST_P(Drift, isHarmlessAmongProcesses) { runProcesses(programs(GetParam() - 2), GetParam()); }
TEST_P(Drift, isHarmlessAmongThreads) { runThreads(programs(GetParam() + 2), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ranks, Drift, testing::Range(2, 6), testing::PrintToStringParamName());

TEST(Soak, oneCommunicatorGoesOn) {
  const std::uint64_t calls = numberFrom("TACC_TEST_CALLS", shortened(20'000));
  constexpr int ranks = 3;
  runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
    DrawnBuffers buffers(ranks);
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t made = 0, seed = firstSeed();
    for (std::uint64_t told = 0; made < calls; ++seed) {
      const auto program = drawProgram(seed, ranks);
      const std::string wrong = runProgram(program, seed, Pace::prompt, comm, rank, ranks, buffers);
      EXPECT_EQ(wrong, "");
      if (!wrong.empty()) return;
      made += program.size();
      if (rank != 0 || (made < calls && made < told + 100'000)) continue;
      told = made;
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      fmt::print("{} calls, {:.1f} s\n", made, seconds.count());
      std::fflush(stdout);
    }
  });
}

}  // namespace
}  // namespace tacc::test
