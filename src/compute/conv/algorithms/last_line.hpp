// The last line of an output's gradient whose pixels are no whole blocks of channels: kernels load whole ones, and
// behind the last channel of this line nothing may be read, so it is copied.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compute/conv/layout.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

class LastLine {
 public:
  LastLine(taccLayout_t layout, const Shape& s)
      : isCut_(!hasWholeBlocks(layout, s.outChannels)),
        line_(static_cast<std::size_t>(s.outWidth) * static_cast<std::size_t>(s.outChannels)),
        before_((static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.outHeight) - 1) * line_) {}

  /// Whether another pixel begins behind the last channel of one.
  bool isCut() const { return isCut_; }
  /// Of the copy, with a block behind it: a multiple of 16. None where it is not needed.
  std::size_t floats() const { return isCut_ ? (line_ + 2 * blockLength - 1) / blockLength * blockLength : 0; }
  void copy(const float* gradient, float* to) const {
    std::copy_n(gradient + before_, line_, to);
    std::fill(to + line_, to + floats(), 0.0F);
  }

 private:
  bool isCut_;
  std::size_t line_, before_;  // floats
};

}  // namespace tacc::conv
