// The two inner kernels that all convolutions (and the matrix product) are made of, and the table of them for one
// instruction set.
//
// Both work on blocks of 16 channels, on every instruction set: a block is one vector of AVX-512, two of AVX2, four of
// NEON. So the layouts of tensors do not depend on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "compute/simd/kernel_sets.hpp"
#include "tacc/compute.h"

namespace tacc::conv {

struct Bf16x3Kernels;

inline constexpr int blockLength = 16;  // channels of a block
inline constexpr int maxBlocks = 4;     // blocks of output channels of one kernel call
inline constexpr int maxPixels = 14;    // pixels of one tile
inline constexpr int maxRows = 16;      // input channels of one gradient tile

/// Which pixels of a tile a run of taps leaves out: they would read outside the image, where there are zeros. More than
/// two are left out by wide kernels only, and kernels of an inputPixel of 16 alone can.
enum class BorderMask : std::int8_t {
  none,
  first,
  firstTwo,
  firstThree,
  firstFour,
  firstFive,
  last,
  lastTwo,
  lastThree,
  lastFour,
  lastFive
};
inline constexpr int mostMasked = 5, mostMaskedOfStride = 2;

/// Products that follow each other in memory: `count` input values per pixel, one after the other, and as many rows of
/// packed weights.
struct TapRun {
  std::ptrdiff_t input;    // where the first value of pixel 0 is, in floats from TileCall::input
  std::ptrdiff_t weights;  // where its weights are, in floats per block from TileCall::weights
  std::int32_t count;
  BorderMask mask;         // pixels that are left out
  bool reachesFurthest;    // no run reads its lines of the cache for pixels further to the right
  bool fetchesNext;        // a line of the cache from `next` on for each value into the L1 cache meanwhile. Only none
  std::int16_t following;  // runs behind it of the same channels, each one pixel further to the right
  std::ptrdiff_t next;     // where the next line or block of channels begins, in floats from TileCall::input
};

/// Tiles that follow each other: of each, for every pixel p and block b of output channels
///   output[b][p] = epilogue(bias[b] + addend[b][p] + sum over runs and values of weights[b] * input[p]).
/// Strides are in floats. Vectors need only the alignment of float.
struct TileCall {
  const float* input;
  std::ptrdiff_t inputPixel;
  const TapRun* runs;
  int runCount;
  const std::ptrdiff_t* values;  // for scattered kernels in place of runs: where each value of pixel 0 is
  int valueCount;
  const float* weights;  // row after row, each blocks * 16 floats
  /// What runs without a mask bring into the L2 cache meanwhile, a line of the cache for each value: from
  /// *weightsAhead on, which they move on, to weightsEnd.
  const float** weightsAhead;
  const float* weightsEnd;
  /// What the runs that reach furthest bring into the L2 cache meanwhile: the pixels that lie this number of floats
  /// behind those of the tile, every fetchStep-th of them from fetchFirst on; 0: none.
  std::ptrdiff_t fetchDistance;
  int fetchFirst, fetchStep;
  const float* bias;    // blocks * 16 floats, or null
  const float* addend;  // laid out as the output and may be it; or null
  float* output;
  std::ptrdiff_t outputPixel;
  std::ptrdiff_t outputBlock;
  int lastChannels;  // of the last block, where another pixel begins behind them, which is not written; 0: whole ones
  taccActivation_t activation;
  bool isNonTemporal;  // the output, whose outputPixel is a multiple of 16, is stored so: the caller ends that
  /// For kernels of pairs: output and addend are bfloat16 too. Not non-temporally.
  bool writesPairs;
  int tiles;                             // `input`, `addend` and `output` are those of the first one
  std::ptrdiff_t inputTile, outputTile;  // from tile to tile
  /// For permuted kernels, which have one block: for each row of weights whose products are made with it.
  const std::int32_t* lanes;    // 16: which value at `offsets` an output channel takes; null (AVX2): the first one
  const std::int32_t* offsets;  // for each vector of the block: where it reads, in floats from the run's input
};

/// Tiles of a weight gradient: of each, for every row c and block b of output channels
///   output[b][c] (+)= sum over images, lines and pixels of gradient[b][pixel] * input[pixel][c].
/// Strides are in floats.
struct GradientCall {
  const float* input;  // row c of a pixel is at c
  std::ptrdiff_t inputPixel;
  std::ptrdiff_t inputLine;
  std::ptrdiff_t inputImage;
  const float* gradient;                       // 16 floats a pixel
  std::ptrdiff_t gradientPixel = blockLength;  // those of permuted kernels follow each other
  std::ptrdiff_t gradientLine;
  std::ptrdiff_t gradientImage;
  std::ptrdiff_t gradientBlock;
  int images;
  int lines;   // of an image
  int pixels;  // of a line
  float* output;
  std::ptrdiff_t outputRow;
  std::ptrdiff_t outputBlock;
  bool accumulate;
  bool isNonTemporal = false;  // the output, in whole vectors that are aligned, is stored so: the caller ends that
  /// Tiles whose rows are side by side in the input, and how many times they are behind each other in other blocks of
  /// it. Their results follow each other.
  int parts = 1, inputBlocks = 1;
  std::ptrdiff_t inputBlock;    // from block to block
  const std::int32_t* lanes;    // for permuted kernels, for each row, as in TileCall
  const std::int32_t* offsets;  // likewise
  /// For those of half a block or a block and a half: they begin with the second half of a block; they end with the
  /// first half of one whose second half has no channels, where zeros are written unless something is added to what is
  /// there.
  bool beginsWithin = false, endsWithin = false;
  // For those of three taps: pixels of a line of the input, and how many of the output come before them.
  int inputPixels, shift;
  // How far behind what is read both tensors are fetched, by permuted kernels into the L2 cache; 0: not, or not further
  // than usual. Only the first tile that reads a line does.
  std::ptrdiff_t inputAhead = 0, gradientAhead = 0;
};

/// Values of a line of the output's gradient that are multiplied by one line of the kernel, of one block.
struct SpreadRun {
  std::ptrdiff_t input;    // where pixel 0 is, in floats from PermutedSpreadCall::input
  std::ptrdiff_t weights;  // where its weights are, in floats
  std::int32_t firstStep, count;
};

/// A line of the gradient of a block of the input, with a stride of 2 and three taps along the lines: output pixel x is
/// the sum over runs, steps and taps t of what pixel (x + shift - t) / 2 of the line contributes, if that is one.
struct PermutedSpreadCall {
  const float* input;
  int inputPixels;
  const SpreadRun* runs;
  int runCount;
  const float* weights;       // for each step three taps of 16
  const std::int32_t* lanes;  // for each step, as in TileCall
  const std::int32_t* offsets;
  float* output;  // 16 floats a pixel
  int outputPixels;
  int shift;  // 0 to 2
  bool accumulate;
};

/// Pixels in bfloat16 become pairs of numbers: float i of pair p is number i of the pixel at p * step from `first`,
/// and of that from `second`, or a zero where there is none.
struct JoinPairsCall {
  const std::uint16_t* first;
  const std::uint16_t* second;  // or null
  std::ptrdiff_t step;
  float* output;  // one pair after the other
  int pairs;
  std::size_t numbers;  // of a pixel
};

/// Most lines of a channel-wise kernel.
inline constexpr int maxDepthwiseLines = 32;

/// Lines [from, to) of a channel-wise convolution of one image and some blocks of 16 channels, with the epilogue of
/// TileCall: line y of the output is the sum over the kernel's lines r of what line y * strideHeight + r *
/// dilationHeight - padHeight of the input contributes; where `spreadsLines`, backward to the data with strides, of
/// line (y + padHeight
/// - r * dilationHeight) / strideHeight, if that is one. Along the lines likewise.
struct DepthwiseCall {
  int blocks;          // whose weights and biases follow each other
  const float* input;  // pixel (0, 0) of the first one; so are `addend` and `output`
  // From pixel to pixel and from block to block; 16 a pixel, but for kernels of other tensors than blocked ones.
  std::ptrdiff_t inputPixel, inputBlock, outputPixel, outputBlock;
  int inputHeight, inputWidth;
  const float* weights;                      // 16 floats for each tap
  std::ptrdiff_t weightsLine, weightsBlock;  // from line to line of the kernel, and from block to block
  const float* bias;                         // 16 floats, or null
  const float* addend;                       // laid out as the output and may be it; or null
  float* output;
  int outputHeight, outputWidth;
  int from, to;
  int kernelHeight, strideHeight, dilationHeight, padHeight;
  int kernelWidth, strideWidth, dilationWidth, padWidth;
  bool spreadsLines;
  std::ptrdiff_t ahead;  // floats of the input that are fetched before they are read; 0: none
  taccActivation_t activation;
  bool isNonTemporal;  // the output is stored non-temporally
  bool goesByPairs;    // in strips of both vectors of a block, where hasPairStrips()
};

/// Whether there are channel-wise kernels for whole blocks at a time where a block is two vectors.
constexpr bool hasPairStrips(int vectorsOfBlock, int width, int stride) {
  return vectorsOfBlock == 2 && width == 3 && stride <= 2;
}

/// Adds to a channel-wise kernel's gradient, of one image and block of 16 channels, what lines [from, to) of the
/// output's gradient contribute.
struct DepthwiseGradientCall {
  const float* input;  // pixel (0, 0)
  int inputHeight, inputWidth;
  const float* gradient;  // likewise
  int gradientWidth;
  std::ptrdiff_t inputPixel, gradientPixel;  // as DepthwiseCall's
  int from, to;
  int kernelHeight, strideHeight, dilationHeight, padHeight, padWidth;
  std::ptrdiff_t ahead, gradientAhead;  // floats of both tensors that are fetched before they are read; 0: none
  float* sums;                          // 16 floats for each tap
  std::ptrdiff_t sumsLine;              // from line to line of the kernel
  int channels;                         // vectors without any are not computed; where pixels are apart, of many blocks
};

/// Winograd's input transforms of tiles that follow each other in a line of one image's block of channels. What lies
/// outside the image counts as zero. Strides are in floats.
struct WinogradInputCall {
  const float* input;        // pixel (0, 0) of the image; 16 floats each
  std::ptrdiff_t inputLine;  // from line to line
  int height, width;         // of the image
  int y, x;                  // where the first tile begins, which may be outside
  int tiles;
  float* output;               // 16 floats a tile, one after the other
  std::ptrdiff_t outputPoint;  // from product to product
};

/// Winograd's output transforms of such tiles, with the epilogue of TileCall, of the part that is inside the image.
struct WinogradOutputCall {
  const float* input;         // 16 floats a tile, one after the other
  std::ptrdiff_t inputPoint;  // from product to product
  const float* bias;          // 16 floats, or null
  const float* addend;        // laid out as the output and may be it; or null
  float* output;              // of the first tile
  std::ptrdiff_t outputLine;
  int lines, pixels;  // that are left of the image from the first tile on
  int tiles;
  taccActivation_t activation;
  bool isNonTemporal;  // non-temporally
};

/// Vectors of weights that a tile kernel reads once a step, of tiles of `pixels`. Where there are as many pixels as
/// vectors or more, weights stay in registers, as far as there are any beside the sums and one input value.
constexpr int heldWeights(int registers, int vectors, int pixels) {
  const int left = registers - 1 - vectors * pixels;
  return pixels < vectors || left > vectors ? vectors : left;
}

/// How many sets of sums a gradient kernel has, of which pixels that follow each other use one after the other: as
/// many as it takes for sums not to wait for themselves.
constexpr int gradientSets(int sums) { return sums >= 6 ? 1 : sums >= 3 ? 2 : 4; }

using WinogradInputKernel = void (*)(const WinogradInputCall&);
using WinogradOutputKernel = void (*)(const WinogradOutputCall&);
using TileKernel = void (*)(const TileCall&);
using GradientKernel = void (*)(const GradientCall&);
using JoinPairsKernel = void (*)(const JoinPairsCall&);
using PermutedSpreadKernel = void (*)(const PermutedSpreadCall&);
using DepthwiseKernel = void (*)(const DepthwiseCall&);
using DepthwiseGradientKernel = void (*)(const DepthwiseGradientCall&);

/// All kernels of one instruction set. Thread safe: nothing in it changes.
struct KernelSet {
  std::string_view isa;           // as in TACC_ISA
  std::string_view vectors;       // the instruction set of the vectors: that of the other layers' kernels
  int fmaLanes;                   // floats of the widest vector
  int registers;                  // of such vectors
  int blockPixel;                 // floats of a pixel of a block that tiles read
  int pixelLimit[maxBlocks + 1];  // most pixels of a tile of that many blocks; 0: no such tile
  int rowLimit[maxBlocks + 1];    // the same for rows of gradient tiles
  TileKernel tile[maxBlocks + 1][maxPixels + 1];         // [blocks][pixels]; inputPixel is blockPixel
  TileKernel everySecond[maxBlocks + 1][maxPixels + 1];  // inputPixel is twice that
  TileKernel strided[maxBlocks + 1][maxPixels + 1];      // the same for any inputPixel
  /// The same for values that do not come in runs, without masks: for an inputPixel of 1, 2 or 4, and [0] for any.
  TileKernel scattered[5][maxBlocks + 1][maxPixels + 1];
  int pixelsOfStep;  // of gradient tiles: 1, or 2, whose floats are pairs of what a pixel and the next one have
  GradientKernel gradient[maxBlocks + 1][maxRows + 1];  // [blocks][rows]
  /// Tiles of half a block and of a block and a half, if a vector is half a block: the second half of the last block is
  /// written as zeros, and its weights are there but are not read. Gradients of a block and a half begin and end as
  /// their call says.
  int halfPixelLimit[3];                          // [blocks: 1 or 2]: most pixels of these; 0: there are none
  TileKernel tileHalf[3][maxPixels + 1];          // [blocks][pixels]; inputPixel is blockPixel
  TileKernel stridedHalf[3][maxPixels + 1];       // the same for any inputPixel
  int halfRowLimit[3];                            // [blocks: 1 or 2]: most rows of gradients of these
  GradientKernel gradientHalf[3][maxRows + 1];    // [blocks][rows]
  int permutedLanes;                              // values that a lane of a permuted kernel can choose from
  int permutedPixelLimit;                         // most pixels of a permuted tile
  TileKernel permuted[maxPixels + 1];             // [pixels], of one block; inputPixel is 16
  TileKernel permutedEverySecond[maxPixels + 1];  // inputPixel is 32
  TileKernel permutedStrided[maxPixels + 1];      // the same for any inputPixel
  PermutedSpreadKernel permutedSpread;
  int spreadLimit;                               // positions of one of its tiles, each two pixels
  int permutedRowLimit;                          // most rows of a permuted gradient tile
  GradientKernel permutedGradient[maxRows + 1];  // [rows], of one block
  /// [stride: 1 or 2][rows] of each of three taps, added to what is there; and the same where all lanes of a vector
  /// take the same value.
  GradientKernel permutedGradientThree[3][maxRows + 1];
  GradientKernel uniformGradientThree[3][maxRows + 1];
  int permutedThreeLimit, uniformThreeLimit;  // most rows; 0: there are none
  /// [width of the kernel: 2, 3, 4, 5 or 7][stride: 1 to 4], without dilation along the lines and with less padding
  /// than the width.
  DepthwiseKernel depthwise[8][5];
  /// [width: 3, 5 or 7][dilation along the lines: 2 or 3], with a stride of 1 and less padding than the kernel reaches.
  DepthwiseKernel depthwiseDilated[8][4];
  DepthwiseKernel depthwiseSpread[8][2];            // backward with a stride of 2, [width: 3, 5 or 7][padWidth % 2]
  DepthwiseKernel depthwiseAny;                     // any width, stride and dilation that does not spread
  DepthwiseGradientKernel depthwiseGradient[8][5];  // as `depthwise`
  /// For pixels that are any distance apart, as those of NHWC are: [width: 3, 5 or 7][stride: 1 or 2], and backward.
  DepthwiseKernel depthwiseApart[8][3];
  DepthwiseKernel depthwiseSpreadApart[8][2];
  DepthwiseGradientKernel depthwiseGradientApart[8][3];
  WinogradInputKernel winogradInput[7];    // [2], [4], [5] and [6]: outputs of a tile in each dimension
  WinogradOutputKernel winogradOutput[7];  // likewise
  /// The function of an epilogue, of `blocks` times 16 floats in place.
  void (*activate)(taccActivation_t function, float* values, std::ptrdiff_t blocks);
  JoinPairsKernel joinPairs;          // there where pixelsOfStep is 2
  const Bf16x3Kernels* split;         // products of split numbers; null: none
  double (*multiplyAdds)(int steps);  // does nothing but multiply-adds; returns how many operations: for the peak
};

/// portableKernels(): what every CPU of its kind has, SSE2 or NEON. avx512Kernels(): of AVX-512 its foundation alone,
/// which all CPUs with AVX-512 have.
#define TACC_DECLARE(set, isThere) const KernelSet& set##Kernels();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

#if defined(__x86_64__)
/// Of AVX-512 BF16, nothing but tiles, each of whose floats of input and weights, or of input and gradient, is a pair
/// of bfloat16: the products of two channels, or pixels, are added at once. To be called where pairKernels() gives
/// them.
const KernelSet& avx512PairKernels();
/// Of AVX-512 BF16, nothing but channel-wise kernels for pixels any distance apart, whose tensors are bfloat16: calls
/// point to these as if they were floats, and count numbers. To be called where bf16DepthwiseKernels() gives them.
const KernelSet& avx512Bf16Depthwise();
#endif

/// Such kernels beside those of a set, for CPUs that have them; null: there are none.
const KernelSet* pairKernels(const KernelSet& kernels);
const KernelSet* bf16DepthwiseKernels(const KernelSet& kernels);

/// The kernels of all instruction sets that this CPU has, best first.
std::vector<const KernelSet*> availableKernels();

/// The best that this CPU has and that are not wider than `widest`, a word of TACC_ISA. Throws taccInvalidArgument when
/// that is unknown or of another kind of CPU.
const KernelSet& bestKernels(std::string_view widest);
/// The same of TACC_ISA.
const KernelSet& bestKernels();

}  // namespace tacc::conv
