// Ranks whose programs have changed how the processor computes: interval arithmetic rounds up for a while, -ffast-math
// drops denormals, debuggers of numbers have traps. The ranks still choose alike, and nothing of the library's own
// traps.
#include <fenv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 3;

/// Calls of all lengths, and the choice of each, as long as all goes well.
void callAll(taccComm_t comm, taccDataType_t type, std::size_t bytesOfElement) {
  for (std::size_t count = 1; count < 1'000'000; count += count / 2 + 1) {
    const std::size_t bytes = count * bytesOfElement;
    std::vector<std::uint8_t> own(ranks * bytes), others(ranks * bytes);
    const std::string what = std::to_string(count) + " elements of " + std::to_string(bytesOfElement) + " bytes";
    for (const taccResult_t result : {taccAllReduce(own.data(), others.data(), count, type, taccSum, comm, nullptr),
                                      taccBcast(own.data(), count, type, 1, comm, nullptr),
                                      taccAllGather(own.data(), others.data(), count, type, comm, nullptr),
                                      taccReduceScatter(own.data(), others.data(), count, type, taccSum, comm, nullptr),
                                      taccReduce(own.data(), others.data(), count, type, taccSum, 2, comm, nullptr)})
      ASSERT_EQ(result, taccSuccess) << what << ": " << taccGetLastError(comm);
    ASSERT_NE(taccExplain(comm, "allreduce", bytes), nullptr) << taccGetLastError(comm);
  }
}

void expectSameChoices(bool oneHost, const std::function<void(int rank)>& change) {
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report&) {
    if (!oneHost) {
      ::setenv("TACC_SHM", "off", 1);
      ::setenv("TACC_TRANSPORT", "tcp", 1);
    }
    change(rank);
    const taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, 10));
    if (comm == nullptr) return;
    callAll(comm, taccFloat32, 4);
    callAll(comm, taccFloat16, 2);
    taccComm_t part = nullptr;
    EXPECT_EQ(taccCommSplit(comm, 0, -rank, &part, nullptr), taccSuccess) << taccGetLastError(comm);
    if (part != nullptr) callAll(part, taccInt32, 4);
    if (part != nullptr) {
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    }
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    ::fesetenv(FE_DFL_ENV);
  });
  team.join(-1, 60);
}

void roundOtherwise(int rank) {
  constexpr std::array modes = {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST};
  ASSERT_EQ(::fesetround(modes[static_cast<std::size_t>(rank)]), 0);
}

#if defined(__x86_64__)
void trap(int) { ASSERT_NE(::feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), -1); }
#endif

TEST(Arithmetic, OfRanksThatRoundOtherwiseChoosesAlike) {
  expectSameChoices(true, roundOtherwise);
  expectSameChoices(false, roundOtherwise);
}

/// What the rest of the program sees is as the program left it.
TEST(Arithmetic, IsTheProgramsOwnAfterACall) {
  Team team(ranks, [&](const taccUniqueId& id, int rank, Report&) {
    ::setenv("TACC_SHM", "off", 1);
    roundOtherwise(rank);
    const int mode = ::fegetround();
    const taccComm_t comm = joinTeam(id, ranks, rank, configOf(20, 10));
    if (comm == nullptr) return;
    EXPECT_EQ(::fegetround(), mode);
    callAll(comm, taccFloat32, 4);
    EXPECT_EQ(::fegetround(), mode);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  });
  team.join(-1, 60);
}

#if defined(__x86_64__)
TEST(Arithmetic, WithTrapsEndsNoRank) {
  expectSameChoices(true, trap);
  expectSameChoices(false, trap);
}
#endif

}  // namespace
}  // namespace tacc::test
