// Blocks of unequal lengths: a partition that a call brings along, in the place of blocks of `count` elements each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacc {

/// Blocks of one buffer, in elements: how long each is, and where it begins.
struct BlockRow {
  std::vector<std::size_t> counts, offsets;

  /// Elements from the buffer's beginning to behind its last block.
  std::size_t extent() const noexcept {
    std::size_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i] != 0) end = std::max(end, offsets[i] + counts[i]);
    return end;
  }
  std::size_t longest() const noexcept {
    std::size_t most = 0;
    for (const std::size_t count : counts) most = std::max(most, count);
    return most;
  }
};

/// The blocks of a rank's buffers, as many as the collective has there; none where it does not use a buffer.
struct UnequalBlocks {
  BlockRow send, receive;
  /// Blocks of one version are equal; 0: nothing is known of these. So who has looked at them need not do so again.
  std::uint64_t version = 0;
};

}  // namespace tacc
