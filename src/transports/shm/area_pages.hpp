// The pages of one rank's area that are committed when they are first used. Communicators that are split off come in
// hundreds, and most of them never make a long call: such a one takes a few pages.
#pragma once

#include <array>
#include <cstddef>

#include "transports/shm/node_segment.hpp"

namespace tacc {

class AreaPages {
 public:
  /// All pages are there.
  AreaPages() = default;
  /// Commits what others look at, and if `rank` is 0 the header and the board: 8 KiB and 320 bytes a rank, or with
  /// messages 0.5 MiB and 1.7 KiB a rank. Throws taccSystemError.
  /// `fd`: the segment's, which is not needed later. Where the kernel commits pages by descriptor alone, before Linux
  /// 5.14, all are committed now.
  AreaPages(const NodeSegment& segment, int rank, int fd);

  /// Before the first use of a part, by its owner, and before every other one: costs a look at a flag. Throws
  /// taccSystemError where the memory is not there.
  void need(AreaPart part) {
    if (isMissing_[static_cast<std::size_t>(part)]) [[unlikely]]
      commit(part);
  }

 private:
  void commit(AreaPart part);

  NodeSegment segment_;
  int rank_ = 0;
  std::array<bool, 5> isMissing_{};  // by AreaPart
};

}  // namespace tacc
