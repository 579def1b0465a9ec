// The pages of one rank's area that are committed when they are first used. Communicators that are split off come in
// hundreds, and most of them never make a long call, or make one and end: such a one takes what its calls use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/shm/node_segment.hpp"

namespace tacc {

class AreaPages {
 public:
  /// All pages are there.
  AreaPages() = default;
  /// Commits what others look at, and if `rank` is 0 the header and the board: 12 KiB and 320 bytes a rank, or with
  /// messages 0.5 MiB and 1.7 KiB a rank. Throws taccSystemError.
  /// `fd`: the segment's, which is not needed later. Where the kernel commits pages by descriptor alone, before Linux
  /// 5.14, all are committed now.
  AreaPages(const NodeSegment& segment, int rank, int fd);

  /// Before the first use of a part, by its owner, and before every other one: costs a comparison. `bytes`: how much of
  /// it is used, from its beginning on, or more than it has. Throws taccSystemError where the memory is not there.
  void need(AreaPart part, std::size_t bytes = whole) {
    if (bytes > there_[static_cast<std::size_t>(part)]) [[unlikely]]
      commit(part, bytes);
  }

 private:
  static constexpr std::size_t whole = SIZE_MAX;
  void commit(AreaPart part, std::size_t bytes);

  NodeSegment segment_;
  int rank_ = 0;
  std::array<std::size_t, 5> there_{whole, whole, whole, whole, whole};  // by AreaPart: bytes from its beginning
};

}  // namespace tacc
