// The first layer of a network: its image has one or three channels, in the layout of the framework. The kernels then
// take what lies next to each other in memory as the values of a pixel: in NCHW a line of the kernel in one channel, in
// NHWC a line of the kernel in all channels. For that, lines are copied between zeros where there is padding. Where the
// taps of a line are apart, a tap is a run by itself; or, for the gradient of the weights, each line is copied as
// several shorter ones, of every so many pixels.
#pragma once

#include <cstddef>

#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// More are better off in blocks.
inline constexpr int fewChannels = 8;

/// `isDilated`: with taps that are apart too.
bool isFewChannels(const Description& d, bool isDilated = false);

/// Some lines of an image as the kernels read them.
class FewChannelsImage {
 public:
  /// `isWhole`: lines are copied whole where taps are apart too, and a run of values is that of one tap.
  explicit FewChannelsImage(const Description& d, bool isWhole = false);

  int blocks() const { return isNhwc_ ? 1 : shape_.inChannels; }  // runs of values for each line of the kernel
  int values() const { return tapsOfRun() * (isNhwc_ ? shape_.inChannels : 1); }
  /// All of a line of the kernel, where they lie side by side.
  int tapsOfRun() const { return isWhole_ && shape_.dilationWidth > 1 ? 1 : shape_.kernelWidth; }
  std::ptrdiff_t pixel() const { return isNhwc_ ? shape_.inChannels : 1; }
  std::ptrdiff_t line() const { return line_; }
  /// Lines that one is copied as, of every so many pixels, and floats of each.
  int phases() const { return isWhole_ ? 1 : shape_.dilationWidth; }
  std::ptrdiff_t phaseLine() const { return line_ / phases(); }
  std::ptrdiff_t plane() const { return plane_; }  // from block to block
  /// Output lines that are copied at once; all when nothing has to be copied.
  int linesAtOnce() const { return linesAtOnce_; }
  /// Whether lines are copied between zeros, and each as one line.
  bool copiesWholeLines() const { return isCopied_ && phases() == 1; }
  /// For the lines of one image.
  double copyCycles() const;
  /// Output lines from one on that find the same lines of the kernel inside the image, and which: the lines before
  /// `first` and from `end` on would multiply zeros.
  struct Inside {
    int lines, first, end;
  };
  Inside insideFrom(int line, int endLine) const;
  /// The part of all pairs of a line of the output and one of the kernel that is inside.
  double insidePart() const;
  /// Floats of scratch, a multiple of 16.
  std::size_t scratchFloats() const { return scratchFloats_; }

  /// The image for output lines [from, to) with the lines of its padding. Either in scratch or where it is.
  const float* lines(const float* image, int from, int to, float* scratch) const;

 private:
  /// Whether the kernel reads a line, counted from the first that is copied: wider strides leave some out.
  bool isLineRead(int line) const;
  void copyLine(const float* from, float* to) const;
  void copyPhases(const float* from, float* to) const;

  Shape shape_;
  bool isNhwc_;
  bool isWhole_;
  bool isCopied_;
  int linesAtOnce_;
  std::ptrdiff_t line_, plane_;
  std::size_t scratchFloats_ = 0;
};

}  // namespace tacc::conv
