// Blocks of unequal lengths of an MPI call as the bytes that tacc moves.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "elements.hpp"
#include "scratch.hpp"

namespace tacc::mpi {

/// Counts and displacements of a buffer that has a block for each rank. Null where MPI does not look at them.
template <class Count, class Displacement>
struct UnequalElements {
  void* address;
  const Count* counts;
  const Displacement* displacements;  // in extents of the type; null: one behind the other
  MPI_Datatype type;
};

/// Blocks of bytes from `base` on.
struct FoundBlocks {
  std::byte* base;
  const std::size_t *counts, *offsets;
};

/// Where blocks lie that are plain memory. Short calls are for a fifth this.
template <class Count, class Displacement>
FoundBlocks findBlocks(const UnequalElements<Count, Displacement>& elements, int ranks, UnequalScratch& scratch) {
  const std::size_t size = bytesOfJudged(elements.type), blocks = static_cast<std::size_t>(ranks);
  scratch.counts.resize(blocks);
  scratch.offsets.resize(blocks);
  std::size_t *const counts = scratch.counts.data(), *const offsets = scratch.offsets.data();
  // Displacements may be negative: they count from the block that comes first.
  std::ptrdiff_t behind = 0, first = PTRDIFF_MAX;
  for (std::size_t r = 0; r < blocks; ++r) {
    const auto count = static_cast<std::ptrdiff_t>(elements.counts[r]);
    const auto begin =
        elements.displacements == nullptr ? behind : static_cast<std::ptrdiff_t>(elements.displacements[r]);
    counts[r] = static_cast<std::size_t>(count) * size;
    offsets[r] = static_cast<std::size_t>(begin) * size;
    if (counts[r] != 0) first = std::min(first, begin);
    behind += count;
  }
  if (first == PTRDIFF_MAX) first = 0;
  const std::size_t base = static_cast<std::size_t>(first) * size;
  for (std::size_t r = 0; r < blocks; ++r) offsets[r] = counts[r] == 0 ? 0 : offsets[r] - base;
  return {reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(elements.address) + base), counts, offsets};
}

/// Such a buffer as bytes: itself, or a copy, block behind block, where elements are no plain block of memory.
class UnequalBlock {
 public:
  /// `scratch` is this object's as long as it lives.
  template <class Count, class Displacement>
  UnequalBlock(const UnequalElements<Count, Displacement>& elements, int ranks, Block::Use use, UnequalScratch& scratch)
      : blocks_(scratch.blocks), counts_(scratch.counts), offsets_(scratch.offsets) {
    blocks_.clear();
    if (isBlock(elements.type)) {
      base_ = findBlocks(elements, ranks, scratch).base;
      return;
    }
    blocks_.reserve(static_cast<std::size_t>(ranks));
    std::ptrdiff_t behind = 0;
    for (int r = 0; r < ranks; ++r) {
      const auto count = static_cast<std::size_t>(elements.counts[r]);
      const auto begin =
          elements.displacements == nullptr ? behind : static_cast<std::ptrdiff_t>(elements.displacements[r]);
      blocks_.push_back(Elements{elements.address, count, elements.type}.movedBy(begin));
      behind += static_cast<std::ptrdiff_t>(count);
    }
    copy(use);
  }

  std::byte* data() const noexcept { return base_; }
  const std::size_t* counts() const noexcept { return counts_.data(); }
  const std::size_t* offsets() const noexcept { return offsets_.data(); }
  std::byte* block(int rank) const noexcept { return base_ + offsets_[static_cast<std::size_t>(rank)]; }
  std::size_t bytes(int rank) const noexcept { return counts_[static_cast<std::size_t>(rank)]; }
  /// What block `rank` is before the call, where only that is given in a buffer that is written.
  void take(int rank) const {
    if (copy_) copyInto(blocks_[static_cast<std::size_t>(rank)], block(rank));
  }
  /// What was written goes where it belongs.
  void deliver() const;

 private:
  void copy(Block::Use use);

  std::vector<Elements>& blocks_;               // of those that are copied
  std::vector<std::size_t>&counts_, &offsets_;  // from base_ on
  std::byte* base_ = nullptr;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace tacc::mpi
