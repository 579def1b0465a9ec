// What channel-wise convolutions of all passes have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "compute/conv/layout.hpp"
#include "compute/conv/plan.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {

/// Channel-wise kernels in the order of the vector kernels: [block of channels][tap][16], zeros where there are no
/// channels. `flips`: the taps of each line come in reverse.
void packDepthwise(const Description& d, bool flips, const float* weights, float* packed);

/// What a channel-wise gradient of weights is in that order, to where the description wants it: the channels of one
/// block.
void deliverDepthwise(const Description& d, int block, const float* sums, float* gradient);

/// Whether there are kernels that spread lines of that many taps with a stride of 2.
constexpr bool hasSpreadKernel(int width, int stride, int dilation) {
  return (width == 3 || width == 5 || width == 7) && stride == 2 && dilation == 1;
}

/// Whether there are kernels for lines of that many taps with that dilation.
constexpr bool hasDilatedKernel(int width, int stride, int dilation, int pad) {
  return (width == 3 || width == 5 || width == 7) && stride == 1 && (dilation == 2 || dilation == 3) && pad >= 0 &&
         pad <= dilation * (width - 1);
}

/// Whether a tensor's pixels may be apart, as those of NHWC are, unless they are one block; and whether there are
/// kernels for that.
constexpr bool isApart(const Description& d) {
  return (d.inputLayout == taccLayoutNhwc || d.outputLayout == taccLayoutNhwc) && d.shape.inChannels != blockLength;
}
/// Whether the last block has fewer channels, and another pixel is behind them.
constexpr bool cutsBlock(const Description& d) { return isApart(d) && d.shape.inChannels % blockLength != 0; }
/// Whether it begins some channels earlier then, so that it ends with the last one. What the last two blocks share is
/// computed twice, alike, so nothing may be added to what is where results go. Where there is but one block, kernels
/// leave out the channels that it lacks.
constexpr bool overlapsBlocks(const Description& d) { return cutsBlock(d) && d.shape.inChannels > blockLength; }
/// Whether the last vector of such a block likewise begins some channels earlier: where vectors are parts of a block.
constexpr bool overlapsVectors(const Description& d) {
  return cutsBlock(d) && !overlapsBlocks(d) && d.vectorLanes < blockLength && d.shape.inChannels % d.vectorLanes != 0;
}
/// Vectors of a block of pixels that are apart that have channels, as parts of a block.
constexpr double partOfBlock(const Description& d) {
  if (!cutsBlock(d) || overlapsBlocks(d)) return 1;
  return static_cast<double>(roundUp(d.shape.inChannels, d.vectorLanes)) / blockLength;
}
/// Of what whole blocks would have in memory, the part that there is.
constexpr double partOfTensor(const Description& d) {
  return isApart(d) ? double(d.shape.inChannels) / (double(d.shape.inBlocks()) * blockLength) : 1;
}
/// The first channel of a block.
constexpr int firstChannel(const Description& d, int block) {
  const int first = block * blockLength;
  return overlapsBlocks(d) ? std::min(first, d.shape.inChannels - blockLength) : first;
}
constexpr bool hasKernelsApart(const Description& d) {
  const Shape& s = d.shape;
  const bool hasVector = d.vectorLanes == blockLength || (d.vectorLanes > 0 && s.inChannels >= d.vectorLanes);
  const bool overlaps = overlapsBlocks(d) || (hasVector && overlapsVectors(d));
  const bool canCut = d.inputLayout == d.outputLayout && hasVector && !(overlaps && (d.residual || d.accumulate));
  return (canCut || !cutsBlock(d)) && (s.kernelWidth == 3 || s.kernelWidth == 5 || s.kernelWidth == 7) &&
         s.strideWidth <= 2 && s.dilationWidth == 1 && s.padWidth < s.kernelWidth;
}

/// Whether tensors are bfloat16, as they lie in memory; which usual kernels alone are there for.
constexpr bool readsBfloat16(const Description& d) { return d.pairs.areRead; }
constexpr std::size_t bytesOfNumber(const Description& d) { return readsBfloat16(d) ? 2 : sizeof(float); }
/// Where a tensor is from a number on.
template <class Float>
Float* numberAt(const Description& d, Float* tensor, std::ptrdiff_t number) {
  const auto bytes = number * static_cast<std::ptrdiff_t>(bytesOfNumber(d));
  using Byte = std::conditional_t<std::is_const_v<Float>, const std::byte, std::byte>;
  return reinterpret_cast<Float*>(reinterpret_cast<Byte*>(tensor) + bytes);
}
/// Cycles of kernels that widen and round numbers, as parts of those that need not.
inline constexpr double cyclesOfBfloat16 = 1.3;
/// Whether kernels are those for pixels that may be any distance apart.
constexpr bool usesKernelsApart(const Description& d) { return isApart(d) || readsBfloat16(d); }

/// Where a stride leaves out lines of so many pixels: from some that are read to those that later results read, `least`
/// floats at least.
constexpr std::ptrdiff_t floatsOfLinesAhead(int strideHeight, int width, std::ptrdiff_t least) {
  const std::ptrdiff_t lines = std::ptrdiff_t{strideHeight} * width * blockLength;
  return (least + lines - 1) / lines * lines;
}

constexpr int channelsOfBlock(const Shape& s, int block) {
  return std::min(blockLength, s.inChannels - block * blockLength);
}

/// Taps of the kernel's lines that a kernel of this library is as wide as.
struct DepthwiseTaps {
  int first, width;
};
/// Taps of lines as those that there are kernels for, one behind the other: 8 are 5 and 3. None where there is
/// dilation, or more padding than the first part is wide.
std::vector<DepthwiseTaps> depthwiseTaps(int width, int dilation, int pad);

/// How a channel-wise kernel goes through a plane: in strips of results in registers, for the usual widths or any; or a
/// tap at a time, whose products are summed, or added to the result.
enum class DepthwiseMethod { strips, anyStrips, tapSums, tapAdditions };

/// The part of a plane of the input that any tap reads: with strides wider than the kernel lines and columns are left
/// out.
double depthwisePartRead(const Shape& shape);

/// Tensors of a channel-wise gradient of the weights that have more bytes together are fetched ahead of its kernels,
/// and smaller ones are left to hardware: from a near last cache it is faster, and of memory servers of Intel ask for
/// more at a time than kernels can, whole lines one after the other.
double leastFetchedBytes(const Shape& shape);

/// Cycles for one image and block of channels, with as many lines of results: multiply-adds of the taps that are
/// inside, and what begins and ends with every line, for each part of the taps.
double depthwiseCycles(const Shape& shape, const KernelSet& kernels, DepthwiseMethod method, int resultLines,
                       std::size_t parts = 1);

/// Blocks of channels of all images, in which vectors without any channel count by half.
double depthwiseBlocks(const Shape& shape, const KernelSet& kernels);

/// A forward plan that computes some lines of an image by themselves, for who reads them at once.
class LinesPlan : public ConvPlan {
 public:
  using ConvPlan::ConvPlan;
  /// All channels of the lines of an image, in blocks of 16 that are `outputBlock` floats apart, from `output` on.
  /// `bias`: whole blocks, or null. `copy`: floatsOfCopy().
  virtual void runLines(const Buffers& buffers, const float* bias, std::size_t image, TaskPart lines, float* output,
                        std::ptrdiff_t outputBlock, float* copy) const = 0;
  virtual std::size_t floatsOfCopy() const = 0;
  /// On one worker, all lines of the batch, from the caches and to them.
  virtual double secondsOfLines() const = 0;
};

/// For descriptions that servesDepthwise() serves.
std::unique_ptr<LinesPlan> makeDepthwiseLines(const Description& d, const KernelSet& kernels);

}  // namespace tacc::conv
