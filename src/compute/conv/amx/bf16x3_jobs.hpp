// Convolutions forward and backward to the data in terms of what is split and read, and of what is written:
// correlations over one and the same image, which is cut into parts.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/conv/amx/bf16x3_image.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// One correlation over what is split: all of a convolution forward, or a phase of one backward.
struct Bf16x3Job {
  std::ptrdiff_t output;  // of its first pixel, in numbers
  int outHeight, outWidth;
  std::ptrdiff_t outLine, outPixel;
  std::vector<Tap> taps;
  std::vector<int> kernelTaps;  // r * kernelWidth + s
};

std::vector<Bf16x3Job> splitJobs(const Description& d);

/// Whether there are kernels for it, and it is in blocks or in NHWC and not too large.
bool canSplit(const Description& d);

/// How many groups of bfloat16 are one for the tiles, whose steps are 32 channels: groups of a few channels that
/// together are a step, or whole blocks at least. Weights between channels of different groups are zeros.
int groupsJoined(const Description& d);
Description withJoinedGroups(const Description& d);

/// Of a number: float32 is split, bfloat16 is not.
int partsOfNumber(const Description& d);

/// Where the channels of a tensor are, in blocks or in NHWC: numbers from one to the next.
struct SplitTensor {
  SplitTensor(taccLayout_t layout, int groups, int channelsOfGroup, int height, int width);
  Bf16x3Image::Steps steps() const { return {image, line, pixel}; }
  std::ptrdiff_t pixel, block, group, line, image;
  std::uint16_t lastMask;  // channels of a group's last block that may be read or written
};

/// Whether pixels are rows of tiles where they lie: bfloat16 of products in NHWC, of whole steps of 32 channels, or of
/// one block of channels.
bool readsInPlace(const Description& d);

/// Whether rows are copied a few strips at a time: bfloat16 of other products whose weights stay in the L2 cache.
bool copiesStrips(const Description& d);

/// Whether the numbers of a line of the kernel are one row: of few channels in NHWC those of its pixels follow each
/// other, so that a step takes them all, and not a tap of mostly zeros. Forward only.
bool readsLines(const Description& d);

/// Whether results are stored non-temporally; of bfloat16 whole lines of the cache only, which the kernels see to.
bool writesNonTemporally(const Description& d);

/// Sizes of both sides, of one group of channels unless it says otherwise.
struct SplitSides {
  explicit SplitSides(const Description& d);
  bool isForward;
  int groups;
  int inBlocks, outBlocks;
  int height, width;    // of what is read; where lines are rows, of those
  SplitTensor in, out;  // what is read, and what is written
  int strideHeight, strideWidth;

  int inPairs() const { return ceilDivide(inBlocks, 2); }
};

/// What all jobs read. Its parts are still to be chosen.
Bf16x3Image uncutSplitImage(const Description& d, const std::vector<Bf16x3Job>& jobs);

/// Cut into the parts that the model finds fastest.
Bf16x3Image splitImage(const Description& d, const std::vector<Bf16x3Job>& jobs);

/// The model: cycles of all parts on one worker.
double splitCycles(const Description& d, const Bf16x3Image& image, const std::vector<Bf16x3Job>& jobs);

/// Bytes of the weights, split.
double splitWeightBytes(const Description& d, const std::vector<Bf16x3Job>& jobs);

// The model's numbers, as measured, in cycles at the clock that the tiles run at: products of tiles whose operands come
// from the L2 cache; sums of one tile delivered; and the bytes that come from behind that cache in a cycle.
inline constexpr double tileProductCycles = 20, deliverTileCycles = 50, bytesInCycle = 8;
/// One row split, of `bytes` bytes in all.
double splitRowCycles(double bytes);
/// The same of bfloat16, whose rows are put together only, and whose products read a tile for each tile of operands
/// where three parts read each two or three times.
inline constexpr double bfloat16RowCycles = 4, bfloat16ProductCycles = 26;

/// Products of float32, forward, in the same cycles. AVX-512 can do 32, at a higher clock.
inline constexpr double plainProductsInCycle = 30;

}  // namespace tacc::conv
