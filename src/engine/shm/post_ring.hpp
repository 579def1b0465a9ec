// Where a rank's posts lie that do not fit its call line: one behind the other in a ring of bytes, so that as many
// short ones as there are lines fit into the memory of a few long ones. The further a rank that only sends may be
// ahead, the rarer it waits, and the longer its posts have left its first cache when they are read.
//
// Bookkeeping of the rank that posts alone; it touches no shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/shm/node_segment.hpp"

namespace tacc {

/// Of `depth` calls at most. A ring takes three of the longest posts at least, or two if all are equally long.
template <std::uint32_t depth>
class PostRing {
 public:
  explicit PostRing(std::size_t bytes) noexcept : bytes_(static_cast<std::uint32_t>(bytes)) {}

  /// The place of what `call`, the next one, posts, of `bytes`; 0: nothing. Returns the call that all ranks must have
  /// posted before it is written: then they have finished all earlier ones, of which some lie there.
  std::uint32_t place(std::uint32_t call, std::size_t bytes) noexcept {
    if (call - oldest_ >= depth) oldest_ = call - depth + 1;
    if (bytes == 0) {  // nothing is placed over anything, nor is the end looked for
      begins_[call % depth] = end_;
      return oldest_;
    }
    const std::size_t room = roomForPost(bytes), phase = end_ % bytes_;
    // Posts are in one piece.
    const std::uint64_t begin = phase + room <= bytes_ ? end_ : end_ + (bytes_ - phase);
    while (oldest_ != call && begins_[oldest_ % depth] + bytes_ < begin + room) ++oldest_;
    begins_[call % depth] = begin;
    end_ = begin + room;
    return oldest_;
  }
  /// Of `call`, one of the last.
  std::size_t offset(std::uint32_t call) const noexcept { return begins_[call % depth] % bytes_; }

 private:
  std::uint32_t bytes_;
  std::uint32_t oldest_ = 0;                   // call whose post nothing has been placed over
  std::uint64_t end_ = 0;                      // bytes behind the last post, since the beginning
  std::array<std::uint64_t, depth> begins_{};  // of the last posts, counted alike
};

}  // namespace tacc
