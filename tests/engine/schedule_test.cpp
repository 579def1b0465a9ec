// How calls are cut: chunks and blocks cover the data, fit their slots and the arena.
#include "engine/schedule.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.hpp"

namespace tacc {
namespace {

Program shapeOf(Partition partition, int blocks, int slots, int scratch, int slotReach, std::size_t rounds) {
  Program program;
  program.algorithm = "shape";
  program.partition = partition;
  program.blocks = blocks;
  program.slots = slots;
  program.scratchBlocks = scratch;
  program.slotReach = slotReach;
  program.rounds.resize(rounds);
  return program;
}

std::vector<Program> shapes() {
  return {shapeOf(Partition::split, 1, 1, 0, 1, 2),  shapeOf(Partition::split, 2, 2, 0, 1, 3),
          shapeOf(Partition::split, 7, 9, 7, 3, 15), shapeOf(Partition::split, 16, 30, 16, 8, 9),
          shapeOf(Partition::stack, 1, 5, 2, 4, 6),  shapeOf(Partition::stack, 1, 0, 3, 0, 4)};
}

constexpr ScheduleLimits limits{512 * 1024, 16 * 1024};

/// The longest block of a chunk of `elements`.
std::size_t longestBlock(const Program& program, std::size_t elements, std::size_t size) {
  if (program.partition == Partition::stack) return elements;
  std::size_t longest = 0;
  for (int b = 0; b < program.blocks; ++b)
    longest = std::max(
        longest, blockBegin(elements, program.blocks, b + 1, size) - blockBegin(elements, program.blocks, b, size));
  return longest;
}

TEST(Schedule, EveryOddCountIsCoveredAndFits) {
  for (const Program& program : shapes()) {
    for (const std::size_t size : {1U, 2U, 4U, 8U}) {
      for (std::size_t count = 1; count <= 70001; count += 2) {
        const Schedule s = makeSchedule(program, count, size, limits);
        ASSERT_GE(s.chunks * s.chunkElements, count);
        ASSERT_LT((s.chunks - 1) * s.chunkElements, count) << "an empty chunk";
        ASSERT_LE(s.depth * static_cast<std::size_t>(program.slots) * s.blockStride, limits.arenaBytes);
        ASSERT_EQ(s.blockStride % cacheLine, 0);
        const std::size_t rest = count - (s.chunks - 1) * s.chunkElements;
        ASSERT_LE(longestBlock(program, std::min(count, s.chunkElements), size) * size, s.blockStride) << count;
        ASSERT_LE(longestBlock(program, rest, size) * size, s.blockStride) << count;
      }
    }
  }
}

/// A chunk's scratch and slots are free again when the next chunk with the same copy begins.
TEST(Schedule, CopiesLastAsLongAsTheirChunks) {
  for (const Program& program : shapes()) {
    const Schedule s = makeSchedule(program, 70001, 4, limits);
    ASSERT_EQ(s.rounds, program.rounds.size());
    const auto last = static_cast<int>(s.rounds) - 1;
    EXPECT_GT(s.tickOf(s.live, 0), s.tickOf(0, last));
    // No rank waits for a reader that is at the same tick or later.
    EXPECT_GT(s.tickOf(s.depth, 0), s.tickOf(0, program.slotReach));
    EXPECT_EQ(s.ticks(), s.tickOf(s.chunks - 1, last) + 1);
  }
}

/// Who stages small chunks may be far ahead of who reads them; what is cut is the same.
TEST(Schedule, CopiesOfSmallSlotsAreMore) {
  for (const Program& program : shapes()) {
    if (program.slots == 0) continue;
    const Schedule s = makeSchedule(program, 70001, 4, limits);
    const Schedule ahead = makeSchedule(program, 70001, 4, {limits.arenaBytes, limits.chunkBytes, 256 * 1024});
    EXPECT_EQ(ahead.chunkElements, s.chunkElements);
    EXPECT_GE(ahead.depth, s.depth);
    const std::size_t copyBytes =
        s.blockStride * static_cast<std::size_t>(std::max(program.slots, program.scratchBlocks));
    EXPECT_EQ(ahead.depth, std::max<std::size_t>(s.depth, std::min<std::size_t>(8, 256 * 1024 / copyBytes)));
  }
}

TEST(Schedule, ChunksAreAboutAsLargeAsWanted) {
  const Program program = shapeOf(Partition::split, 4, 4, 0, 1, 3);
  const Schedule s = makeSchedule(program, 1 << 20, 4, limits);
  EXPECT_LE(s.chunkElements * 4, limits.chunkBytes);
  EXPECT_GE(s.chunkElements * 4, limits.chunkBytes / 2);
}

TEST(Schedule, MoreChunksThanClocksCountAreAnError) {
  const Program program = shapeOf(Partition::split, 4, 4, 0, 1, 3);
  for (int bits = 10; bits < 63; ++bits) {
    const std::size_t count = std::size_t{1} << bits;
    try {
      const Schedule s = makeSchedule(program, count, 1, limits);
      EXPECT_GE(s.chunkElements * s.chunks, count) << count;
      EXPECT_EQ(s.ticks(), static_cast<std::uint64_t>(s.advance) * (s.chunks - 1) + s.stretch * (s.rounds - 1) + 1);
      EXPECT_LT(s.ticks(), std::uint32_t{1} << 31) << count;
      EXPECT_LT(bits, 60);  // more than 2^32 chunks
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInvalidArgument);
      EXPECT_GT(bits, 42) << "memory may have as much: " << error.what();
    }
  }
}

TEST(Schedule, WithoutStagingAllIsOneChunk) {
  const Schedule s = makeSchedule(shapeOf(Partition::split, 4, 0, 0, 0, 3), 1 << 20, 4, limits);
  EXPECT_EQ(s.chunks, 1);
  EXPECT_EQ(s.chunkElements, 1 << 20);
}

TEST(Schedule, NothingToDoIsOneEmptyChunk) {
  for (const Program& program : shapes()) EXPECT_EQ(makeSchedule(program, 0, 4, limits).chunks, 1);
}

TEST(Schedule, AnArenaThatIsTooSmallIsAnError) {
  const Program program = shapeOf(Partition::split, 64, 64, 0, 1, 3);
  try {
    makeSchedule(program, 1000, 4, {.arenaBytes = 4096, .chunkBytes = 4096});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("4096 bytes"), std::string::npos) << error.what();
  }
}

TEST(BlockBegin, IsMonotonicAlignedAndCovers) {
  for (const std::size_t size : {1U, 2U, 4U, 8U}) {
    for (const int blocks : {1, 2, 3, 7, 16, 61}) {
      for (std::size_t count = 0; count < 5000; count += count < 200 ? 1 : 37) {
        ASSERT_EQ(blockBegin(count, blocks, 0, size), 0);
        ASSERT_EQ(blockBegin(count, blocks, blocks, size), count);
        const std::size_t even = (count + static_cast<std::size_t>(blocks) - 1) / static_cast<std::size_t>(blocks);
        for (int b = 0; b < blocks; ++b) {
          const std::size_t first = blockBegin(count, blocks, b, size), next = blockBegin(count, blocks, b + 1, size);
          ASSERT_LE(first, next);
          ASSERT_TRUE(first == count || first * size % cacheLine == 0) << "two ranks would write into one cache line";
          ASSERT_LE((next - first) * size, roundUp(even * size, cacheLine) + cacheLine);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tacc
