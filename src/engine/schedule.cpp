#include "engine/schedule.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t chunksUnderWay = 4;  // more of them hide more jitter, and take more cache
constexpr std::uint32_t mostCopies = 8;      // of slots; more of them make nothing quicker
/// Ranks' clocks have 32 bits and are compared by their difference.
constexpr std::size_t mostTicks = std::size_t{1} << 30;

/// How many chunks of `chunkElements` there are.
std::uint32_t chunksOf(std::size_t count, std::size_t chunkElements, std::size_t elementBytes, std::uint32_t advance) {
  const std::size_t chunks = std::max<std::size_t>(1, (count + chunkElements - 1) / chunkElements);
  if (chunks > mostTicks / advance)
    fail(
        taccInvalidArgument,
        "{} elements of {} bytes are more than {} chunks of {}; no memory has so many, or TACC_CHUNK_SIZE is too small",
        count, elementBytes, mostTicks / advance, chunkElements);
  return static_cast<std::uint32_t>(chunks);
}

}  // namespace

Schedule makeSchedule(const Program& program, std::size_t count, std::size_t elementBytes,
                      const ScheduleLimits& limits) {
  Schedule s;
  s.rounds = static_cast<std::uint32_t>(std::max<std::size_t>(1, program.rounds.size()));
  s.chunkElements = std::max<std::size_t>(1, count);
  const bool split = program.partition == Partition::split;
  const auto blocks = static_cast<std::size_t>(split ? program.blocks : 1);
  const auto volume = static_cast<std::size_t>(std::max(program.slots, program.scratchBlocks));
  if (volume == 0) return s;

  s.advance = std::max(1U, (s.stretch * (s.rounds - 1) + chunksUnderWay - 1) / chunksUnderWay);
  s.depth = s.stretch * static_cast<std::uint32_t>(program.slotReach) / s.advance + 2;
  s.live = s.stretch * (s.rounds - 1) / s.advance + 1;

  // Aligned boundaries can make a block one line longer than an even one.
  const std::size_t room = limits.arenaBytes / (s.depth * volume) / cacheLine * cacheLine;
  if (room < 2 * cacheLine)
    fail(taccInvalidUsage,
         "the staging area of {} bytes a rank is too small for {} slots of {}; TACC_CHUNK_SIZE sets it",
         limits.arenaBytes, s.depth * volume, program.algorithm);
  const std::size_t wanted = roundUp(std::max(limits.chunkBytes / volume, cacheLine), cacheLine) + cacheLine;
  const std::size_t whole = roundUp((count + blocks - 1) / blocks * elementBytes, cacheLine) + cacheLine;
  s.blockStride = std::min({room, wanted, whole});
  const std::size_t copies = std::min(limits.arenaBytes, limits.aheadBytes) / (s.blockStride * volume);
  s.depth = std::max(s.depth, static_cast<std::uint32_t>(std::min<std::size_t>(copies, mostCopies)));
  const std::size_t blockElements = (s.blockStride - cacheLine) / elementBytes;
  s.chunkElements = std::max<std::size_t>(1, blockElements * blocks);
  s.chunks = chunksOf(count, s.chunkElements, elementBytes, s.advance);
  // Equal chunks instead of full ones and a small rest.
  const std::size_t line = cacheLine / elementBytes;
  s.chunkElements = std::min(s.chunkElements, roundUp((count + s.chunks - 1) / s.chunks, line * blocks));
  s.chunkElements = std::max<std::size_t>(1, s.chunkElements);
  s.chunks = chunksOf(count, s.chunkElements, elementBytes, s.advance);
  return s;
}

}  // namespace tacc
