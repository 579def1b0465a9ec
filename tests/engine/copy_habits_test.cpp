// What a reader claims of copies whose owners have time, or have not.
#include "engine/shm/copy_habits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacc {
namespace {

/// An owner that makes this part of a copy, of what the reader leaves to it.
struct Owner {
  double part;

  std::uint32_t makes(std::uint32_t pieces, std::uint32_t claimed) const {
    return std::min(pieces - claimed, static_cast<std::uint32_t>(part * pieces));
  }
};

/// Calls of some copies of `pieces` side by side; how many of the calls read theirs as a whole.
int readWhole(CopyHabit& habit, const Owner& owner, int calls, std::uint32_t pieces, int copies = 1) {
  int whole = 0;
  for (int call = 0; call < calls; ++call) {
    const std::uint32_t claimed = habit.firstClaim(pieces);
    EXPECT_GE(claimed, 1u);
    EXPECT_LE(claimed, pieces);
    whole += claimed == pieces ? 1 : 0;
    for (int i = 0; i < copies; ++i) habit.record(pieces, claimed, owner.makes(pieces, claimed));
  }
  return whole;
}

TEST(CopyHabit, readsInOneWhereTheOwnerHasNoTime) {
  for (const std::uint32_t pieces : {8U, 16U, 17U, 100U, 4096U}) {
    CopyHabit habit;
    EXPECT_GE(readWhole(habit, {0}, 200, pieces), 170) << pieces;
  }
}

TEST(CopyHabit, leavesHalfWhereTheOwnerWaits) {
  for (const std::uint32_t pieces : {2U, 8U, 16U, 17U, 100U, 4096U}) {
    CopyHabit habit;
    EXPECT_EQ(readWhole(habit, {0.5}, 200, pieces), 0) << pieces;
  }
}

TEST(CopyHabit, followsOwnersThatChange) {
  for (const std::uint32_t pieces : {7U, 16U, 100U})  // copies have 16 at least
    for (const int copies : {1, 2, 3, 4}) {
      CopyHabit habit;
      readWhole(habit, {0}, 100, pieces, copies);
      readWhole(habit, {0.5}, 12, pieces, copies);  // until the next trial
      EXPECT_EQ(readWhole(habit, {0.5}, 100, pieces, copies), 0) << pieces << " " << copies;
      EXPECT_GE(readWhole(habit, {0}, 100, pieces, copies), 60) << pieces << " " << copies;
    }
}

/// An owner that comes before the reader leaves it less than it would take.
TEST(CopyHabit, countsWhatWasTakenBeforeItClaimed) {
  CopyHabit habit;
  readWhole(habit, {0}, 100, 16);
  for (int call = 0; call < 12; ++call) {
    const std::uint32_t left = 12, claimed = habit.firstClaim(left);
    habit.record(16, claimed, 16 - claimed);
  }
  EXPECT_EQ(habit.firstClaim(16), 8u);
}

TEST(CopyHabit, isOfACollectiveAndALength) {
  CopyHabits habits;
  readWhole(habits.of(Collective::allToAll, 1 << 20), {0}, 10, 16);
  EXPECT_EQ(habits.of(Collective::allToAll, (1 << 20) + 5).firstClaim(16), 16u);
  EXPECT_EQ(habits.of(Collective::allToAll, 1 << 19).firstClaim(16), 8u);
  EXPECT_EQ(habits.of(Collective::broadcast, 1 << 20).firstClaim(16), 8u);
}

}  // namespace
}  // namespace tacc
