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

/// Copies of `pieces`; how many of them were read as a whole.
int readWhole(CopyHabit& habit, const Owner& owner, int copies, std::uint32_t pieces) {
  int whole = 0;
  for (int i = 0; i < copies; ++i) {
    const std::uint32_t claimed = habit.firstClaim(pieces);
    EXPECT_GE(claimed, 1u);
    EXPECT_LE(claimed, pieces);
    whole += claimed == pieces ? 1 : 0;
    habit.record(pieces, owner.makes(pieces, claimed));
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
  for (const std::uint32_t pieces : {16U, 100U}) {
    CopyHabit habit;
    readWhole(habit, {0}, 100, pieces);
    readWhole(habit, {0.5}, 12, pieces);  // until the next trial
    EXPECT_EQ(readWhole(habit, {0.5}, 100, pieces), 0) << pieces;
    EXPECT_GE(readWhole(habit, {0}, 100, pieces), 80) << pieces;
  }
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
