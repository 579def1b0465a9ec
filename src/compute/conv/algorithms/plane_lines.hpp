// How a convolution of a few channels in NCHW reads lines: which values of which lines belong to a line of the result,
// and the lines as the kernels want them, with zeros beside the image and, where there is a stride along them, every
// s-th pixel together.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/kernels/planes_kernels.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// What a line of the result is made of: backward to the data of lines of the output's gradient, otherwise of lines of
/// the input. A phase are pixels of the result a stride apart, which see the same taps; there is more than one
/// backward to the data only.
class PlaneLines {
 public:
  PlaneLines(const Shape& shape, bool isData);

  /// Channels of a group, and the size, of what is read.
  int channels() const { return channels_; }
  int height() const { return height_; }
  int width() const { return width_; }
  int phases() const { return static_cast<int>(taps_.size()); }
  /// A tap along the line that a phase sees, and where pixel 0 reads, from a line's beginning.
  struct Column {
    int tap;
    std::ptrdiff_t at;
  };
  const std::vector<Column>& columns(int phase) const { return taps_[static_cast<std::size_t>(phase)]; }
  /// The line that tap line `r` reads for line `y` of the result; -1: none.
  int lineOf(int y, int r) const;
  /// The ring of one channel has as many lines as a line of the result sees; and the rings of all channels.
  int ringLines() const { return ringLines_; }
  std::ptrdiff_t lineFloats() const { return lineFloats_; }
  std::ptrdiff_t ringFloats() const { return ringLines_ * lineFloats_; }
  std::size_t floats() const { return static_cast<std::size_t>(channels_ * ringFloats()); }
  /// Brings a line to where its zeros are already.
  void prepare(const float* line, float* to) const;
  /// Whether lines are left out between those that are read: hardware does not look ahead over them.
  bool skipsLines() const { return !isData_ && shape_.kernelHeight < shape_.strideHeight; }
  /// Fetches, where `from` is line `line`, the one that the next line of the result reads in its place.
  void fetch(const float* from, int line) const;
  /// Cycles for one line.
  double prepareCycles() const;

 private:
  Shape shape_;
  bool isData_;
  int channels_, height_, width_;
  int margin_, step_;              // pixels before the line, and from one to the next that are together
  std::ptrdiff_t together_ = 0;    // floats of pixels that are together
  std::ptrdiff_t lineFloats_ = 0;  // of all of a line
  int ringLines_;
  std::vector<char> isRead_;               // of the pixels that are together, those that any tap reads
  std::vector<std::vector<Column>> taps_;  // of every phase
};

}  // namespace tacc::conv
