// Cutting a call's data: elements into chunks, a chunk into the plan's blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transports/shm/node_segment.hpp"

namespace tacc {

/// First element of block `b` of `blocks` in a vector of `count`. Boundaries lie on cache lines of an aligned vector,
/// so that two ranks never write into one line; a small vector's elements gather in its first blocks.
/// blockBegin(blocks) == count.
constexpr std::size_t blockBegin(std::size_t count, int blocks, int b, std::size_t elementBytes) noexcept {
  const std::size_t line = cacheLine / elementBytes;
  const std::size_t even = count * static_cast<std::size_t>(b) / static_cast<std::size_t>(blocks);
  return b == blocks ? count : std::min(count, (even + line - 1) / line * line);
}

constexpr std::size_t roundUp(std::size_t value, std::size_t unit) noexcept { return (value + unit - 1) / unit * unit; }

/// How one call is cut and interleaved. A pure function of agreed values, so it is equal on all ranks.
///
/// All ranks go through the same ticks. In tick t a rank works on every chunk c and round r with t = advance * c +
/// stretch * r. A rank's clock is the number of ticks that it has finished, so "round r of chunk c is over at rank q"
/// is one comparison.
struct Schedule {
  std::size_t chunkElements = 0;  // split: of the whole vector; stack: of every block
  std::size_t blockStride = 0;    // bytes between slots, and between scratch blocks
  std::uint32_t chunks = 1;
  std::uint32_t rounds = 1;
  std::uint32_t advance = 1;  // ticks between one chunk's start and the next one's
  std::uint32_t stretch = 1;  // ticks between a chunk's rounds
  std::uint32_t depth = 1;    // copies of the slots: chunk c uses copy c % depth
  std::uint32_t live = 1;     // copies of the scratch: chunks that are under way together

  std::uint32_t tickOf(std::uint32_t chunk, int round) const noexcept {
    return advance * chunk + stretch * static_cast<std::uint32_t>(round);
  }
  std::uint32_t ticks() const noexcept { return advance * (chunks - 1) + stretch * (rounds - 1) + 1; }
};

}  // namespace tacc
