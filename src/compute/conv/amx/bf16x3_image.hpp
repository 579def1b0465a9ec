// How a part of a batch lies in memory once it is split, such that 16 output pixels that follow each other read, for
// every tap, 16 rows that follow each other.
//
// Lines follow each other with a pitch that leaves room for the padding, zeros, which is at the end of one line that of
// the next one's beginning too; so do images. The output is computed at the same pitch: with it, a position is
// line * pitch + column, a tap is a distance, and what falls between the lines is computed and dropped.
//
//   3x3, pad 1, 4 x 4 pixels, pitch 5:     0 0 0 0 0          output at    a b c d .
//                                          0 x x x x                       e f g h .
//                                          0 x x x x                       ...
//                                          ...               tap (1, 1) of position a: distance pitch + 1
//
// With strides there is such an image for each phase: pixels whose coordinates are equal modulo the stride.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/amx/bf16x3.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// One dimension of what is read.
struct Bf16x3Axis {
  struct Phase {
    bool isUsed;
    int lead;  // zeros before the first pixel
    int end;   // of the pixels that are read
  };
  Bf16x3Axis(int source, int outputs, int stride, const std::vector<int>& distances);

  int source, stride, pad;
  int furthest = 0;  // most steps that a tap goes from an output position
  int pitch;         // positions from line to line, or lines from image to image
  std::vector<Phase> phases;

  int phaseOf(int distance) const { return (distance + pad) % stride; }
  int stepOf(int distance) const { return (distance + pad) / stride; }
  /// Source coordinate of a place in a phase.
  int sourceOf(int phase, int place) const { return phase + stride * place - pad; }
};

/// The layout of a driver's images, without its channels' groups. `parts` are those of a number; `taps` are all that
/// occur; outputs are the largest numbers.
class Bf16x3Image {
 public:
  Bf16x3Image(int blocks, int parts, int height, int width, int strideHeight, int strideWidth, int outHeight,
              int outWidth, const std::vector<Tap>& taps);

  /// Decides how much is split at once: some images, or some output lines of one. `bytes` is about what it may take.
  void choosePart(int batch, std::size_t bytes);
  /// Numbers from one to the next.
  struct Steps {
    std::ptrdiff_t image, line, pixel;
  };
  /// Once that is decided: what runs() gives, for such a source.
  void findRuns(const Steps& source);
  /// Each run becomes those that `cut` gives, which are of the same rows.
  void cutRuns(const std::function<std::vector<Bf16x3Run>(const Bf16x3Run&)>& cut);

  struct Part {
    int image, images;  // first one, how many
    int line, lines;    // of the output, of each image
  };
  int parts() const { return imageParts_ * lineParts_; }
  Part part(int index) const;

  int pitch() const { return columns_.pitch; }
  /// Lines from image to image of a part.
  int imageLines() const { return partLines_ == outHeight_ ? lines_.pitch : partLines_; }
  /// Output positions of a part, up to the last one that counts.
  int positions(const Part& part, int outHeight, int outWidth) const;
  /// Position and line, column and image of the output: -1 where it falls between.
  std::vector<std::ptrdiff_t> outputs(int outHeight, int outWidth, std::ptrdiff_t image, std::ptrdiff_t line,
                                      std::ptrdiff_t pixel) const;

  /// Positions of one phase of one block or pair of blocks: with room for whole tiles.
  std::ptrdiff_t rows() const { return rows_; }
  int phases() const { return static_cast<int>(used_.size()); }
  /// Which of the phases in memory a tap reads, and at which distance in positions.
  int phaseOf(Tap tap) const;
  std::ptrdiff_t distanceOf(Tap tap) const;

  /// Parts of one kind have the same runs.
  int kinds() const { return 2 * lineParts_; }
  int kindOf(int part) const;
  /// A part of that kind, of which there is at least one; or -1.
  int partOfKind(int kind) const;
  /// The output's pixels at their positions.
  std::vector<Bf16x3Run> outputRuns(const Part& part, const Steps& output) const;
  /// The pixels of one phase in a part, in order.
  std::span<const Bf16x3Run> runs(int part, int phase) const;

 private:
  struct UsedPhase {
    int y, x;
  };
  int blocks_, numberParts_, outHeight_, outWidth_;
  Bf16x3Axis lines_, columns_;
  std::vector<UsedPhase> used_;
  int partImages_ = 1, partLines_ = 1;
  int imageParts_ = 1, lineParts_ = 1, batch_ = 1;
  std::ptrdiff_t rows_ = 0;
  /// For each phase, of each part of lines, of whole parts and of the last images, which may be fewer.
  std::vector<std::vector<Bf16x3Run>> runs_;
  std::vector<Bf16x3Run> runsOf(const Part& part, const UsedPhase& phase, const Steps& source) const;
};

}  // namespace tacc::conv
