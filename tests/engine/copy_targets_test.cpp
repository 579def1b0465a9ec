// Which destinations of a copy are stored how.
#include "engine/shm/copy_targets.hpp"

#include <gtest/gtest.h>

namespace tacc::test {
namespace {

using Kind = Place::Kind;
using Targets = std::vector<void*>;

constexpr std::size_t longCopy = 32 * 1024;

/// A copy to a slot, this rank's result and a peer's.
struct CopyTargetsTest : ::testing::Test {
  char source = 0, slot = 0, result = 0, remote = 0;
  CopyTargets targets;

  void assign(Kind from, std::size_t bytes, const StoreWays& ways, bool inPlace = false) {
    const Operation operation{
        0, 1, false, false, {{from, 0, 0}}, {{Kind::slot, 0, 0}, {Kind::output, 0, 0}, {Kind::remoteOutput, 1, 0}}};
    targets.assign(operation, &source, {&slot, inPlace ? &source : &result, &remote}, bytes, ways);
  }
};

TEST_F(CopyTargetsTest, slotsAndResultsAreStoredEachInTheirWay) {
  assign(Kind::slot, longCopy, {.slots = true});
  EXPECT_EQ(targets.slots, Targets{&slot});
  EXPECT_EQ(targets.results, (Targets{&result, &remote}));
  EXPECT_TRUE(targets.streamsSlots);
  EXPECT_FALSE(targets.streamsResults);
}

TEST_F(CopyTargetsTest, whatIsStoredAlikeIsStoredInOnePass) {
  for (const bool streams : {false, true}) {
    assign(Kind::slot, longCopy, {.slots = streams, .results = streams});
    EXPECT_TRUE(targets.slots.empty());
    EXPECT_EQ(targets.results.size(), 3U);
    EXPECT_EQ(targets.streamsResults, streams);
  }
}

TEST_F(CopyTargetsTest, theOwnInputHasAWayOfItsOwn) {
  assign(Kind::input, longCopy, {.slots = false, .results = false, .own = true});
  EXPECT_TRUE(targets.streamsResults);
  EXPECT_EQ(targets.slots, Targets{&slot});
  assign(Kind::slot, longCopy, {.slots = false, .results = false, .own = true});
  EXPECT_FALSE(targets.streamsResults);
}

TEST_F(CopyTargetsTest, whatIsThereAlreadyIsLeftOut) {
  assign(Kind::input, longCopy, {.slots = true, .own = false}, true);
  EXPECT_EQ(targets.results, Targets{&remote});
}

TEST_F(CopyTargetsTest, whatIsShortIsNeverStreamed) {
  assign(Kind::input, leastStream - 1, {.slots = true, .results = true, .own = true});
  EXPECT_FALSE(targets.streamsSlots || targets.streamsResults);
  EXPECT_EQ(targets.results.size(), 3U);
}

}  // namespace
}  // namespace tacc::test
