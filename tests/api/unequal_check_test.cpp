// The checks of calls whose blocks have unequal lengths: what a communicator remembers of its last one changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fake_communicator.hpp"
#include "from_c.hpp"

namespace tacc::test {
namespace {

using Row = std::array<std::size_t, 3>;

/// A call of rank 1 of 3, right or wrong, of few kinds, so that many repeat the one before or differ in one argument.
struct DrawnCall {
  int function = 0;
  bool hasCounts[2] = {true, true}, hasPlaces[2] = {true, true};
  Row counts[2] = {}, places[2] = {};
  std::size_t single = 0;
  int send = 0, receive = 0;  // where the buffers are
  taccDataType_t type = taccInt32;
  taccRedOp_t op = taccSum;
  int root = 1;

  void drawOne(std::mt19937& random) {
    const auto side = random() % 2;
    switch (random() % 12) {
      case 0:
        function = static_cast<int>(random() % 5);
        break;
      case 1:
        hasCounts[side] = random() % 4 != 0;
        break;
      case 2:
        hasPlaces[side] = random() % 2 != 0;
        break;
      case 3:
        counts[side][random() % 3] = random() % 20 == 0 ? SIZE_MAX / 2 : random() % 3;
        break;
      case 4:
        places[side][random() % 3] = random() % 20 == 0 ? SIZE_MAX / 2 : random() % 7;
        break;
      case 5:
        single = random() % 3;
        break;
      case 6:
        send = static_cast<int>(random() % 4);
        break;
      case 7:
        receive = static_cast<int>(random() % 4);
        break;
      case 8:
        type = random() % 8 == 0 ? taccNumTypes : random() % 2 == 0 ? taccInt32 : taccInt64;
        break;
      case 9:
        op = random() % 4 == 0 ? taccMaxLoc : random() % 2 == 0 ? taccSum : taccMax;
        break;
      case 10:
        root = static_cast<int>(random() % 5) - 1;
        break;
      default:
        break;  // as before
    }
  }

  taccResult_t make(taccComm_t comm) const {
    static std::array<std::int64_t, 64> memory{};
    void* const buffers[] = {memory.data(), memory.data() + 2, memory.data() + 32, nullptr};
    const void* const from = buffers[send];
    void* const to = buffers[receive];
    const auto countsOf = [this](int side) { return hasCounts[side] ? counts[side].data() : nullptr; };
    const auto placesOf = [this](int side) { return hasPlaces[side] ? places[side].data() : nullptr; };
    switch (function) {
      case 0:
        return taccAllGatherV(from, to, countsOf(0), placesOf(0), type, comm, nullptr);
      case 1:
        return taccReduceScatterV(from, to, countsOf(0), placesOf(0), type, op, comm, nullptr);
      case 2:
        return taccGatherV(from, single, to, countsOf(0), placesOf(0), type, root, comm, nullptr);
      case 3:
        return taccScatterV(from, countsOf(0), placesOf(0), to, single, type, root, comm, nullptr);
      default:
        return taccAllToAllV(from, countsOf(0), placesOf(0), to, countsOf(1), placesOf(1), type, comm, nullptr);
    }
  }
};

struct Outcome {
  taccResult_t result;
  std::string error;
  std::size_t events;
  std::vector<std::size_t> blocks;  // what the communicator was asked for
  bool operator==(const Outcome&) const = default;
};

Outcome outcomeOf(const DrawnCall& call, taccComm_t comm, FakeWorld& world) {
  const std::size_t before = world.events().size();
  Outcome outcome{call.make(comm), "", 0, {}};
  if (outcome.result != taccSuccess) outcome.error = taccGetLastError(comm);
  const std::vector<Event> events = world.events();
  outcome.events = events.size() - before;
  if (outcome.events != 1) return outcome;
  const UnequalBlocks& blocks = *events.back().call.blocks;
  for (const BlockRow* row : {&blocks.send, &blocks.receive}) {
    outcome.blocks.insert(outcome.blocks.end(), row->counts.begin(), row->counts.end());
    outcome.blocks.insert(outcome.blocks.end(), row->offsets.begin(), row->offsets.end());
    outcome.blocks.push_back(SIZE_MAX);  // where the next row begins
  }
  return outcome;
}

TEST(UnequalCheck, whatWasCheckedBeforeChangesNothing) {
  std::mt19937 random(20);
  int right = 0, wrong = 0, again = 0;
  for (int row = 0; row < 60; ++row) {
    FakeWorld world;
    const taccComm_t kept = world.make(1, 3);
    DrawnCall call;
    std::uint64_t last = 0;
    for (int step = 0; step < 60; ++step) {
      call.drawOne(random);
      const Outcome outcome = outcomeOf(call, kept, world);
      const bool isRight = outcome.result == taccSuccess;
      if (isRight) {
        const std::uint64_t version = world.events().back().call.blocks->version;
        EXPECT_NE(version, 0u);
        again += version == last ? 1 : 0;
        last = version;
      }
      (isRight ? right : wrong) += 1;
      // A handle of another rank had it before, whose blocks are not these.
      const taccComm_t other = world.make(step % 2 == 0 ? 0 : 2, 3);
      call.make(other);
      taccCommDestroy(other);
      const taccComm_t fresh = world.make(1, 3);
      EXPECT_EQ(outcomeOf(call, fresh, world), outcome) << "row " << row << ", step " << step;
      taccCommDestroy(fresh);
    }
    taccCommDestroy(kept);
  }
  EXPECT_GT(right, 500);
  EXPECT_GT(wrong, 500);
  EXPECT_GT(again, 200) << "nothing was remembered";
}

}  // namespace
}  // namespace tacc::test
