// The inner loops of the layers beside convolutions, and the table of them for one instruction set. Activations are in
// taccLayoutNchw16c: a kernel sees one block of 16 channels of one image, `pixels` times 16 floats, unless it says
// otherwise. Arrays "of a block" have 16 numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compute/simd/kernel_sets.hpp"

namespace tacc::layers {

/// Batch normalisation, forward: output = (input - mean) * factor + shift [+ residual], and at last max(x, 0).
struct NormalizeCall {
  const float* input;
  const float* residual;  // may be null
  float* output;          // may be `input` or `residual`
  std::ptrdiff_t pixels;
  const float *mean, *factor, *shift;  // of a block
  bool relu;
  bool isNonTemporal;  // non-temporally
};

/// Backward: inputGradient = (outputGradient - offset - (input - mean) * slope) * factor.
struct NormalizeGradientCall {
  const float* input;
  const float* outputGradient;
  float* inputGradient;  // may be `outputGradient`
  std::ptrdiff_t pixels;
  const float *mean, *factor, *offset, *slope;  // of a block
  bool isNonTemporal;                           // non-temporally
};

/// Local response normalisation of some pixels through all blocks of an image.
struct ResponseCall {
  const float* input;           // of the first block
  const float* outputGradient;  // backward
  float* result;
  std::ptrdiff_t plane;  // floats from block to block
  int blocks;
  std::ptrdiff_t pixels;
  int half;  // channels on either side that count, up to 16
  float base, share, exponent;
};

/// Dropout of 128 numbers in turn; how many are left of the last ones, `count` says.
struct DropoutCall {
  const float* input;
  float* output;  // may be `input`
  std::size_t count;
  std::uint64_t firstGroup;  // the number of these 128 in the tensor
  std::uint64_t seed, step;
  std::uint32_t threshold;  // random numbers, in the upper 16 bits, below it drop
  float factor;             // of what is kept
  bool isNonTemporal;       // non-temporally
};

/// Of every row and column: results[row][column] = the sum of their products, which follow each other in memory.
struct InnerProductCall {
  const float* rows;
  std::ptrdiff_t rowStride;  // floats from one to the next; so are the others
  int rowCount;
  const float* columns;
  std::ptrdiff_t columnStride;
  int columnCount;
  // Products of a sum. What a column has behind them, up to a multiple of 16, is read and multiplied by zeros.
  std::ptrdiff_t depth;
  float* results;
  std::ptrdiff_t resultStride;  // from row to row
  bool adds;                    // to what is there
};

/// Columns of a panel, but for the last one.
inline constexpr int panelColumns = 128;

/// Of every row and column: results[row][column] = the sum of their products. Panels of columns follow each other; one
/// has a row of panelColumns numbers for each number of a sum, the last panel of what is left of the columns and zeros
/// up to a multiple of 16.
struct PanelProductCall {
  const float* rows;
  std::ptrdiff_t rowStride;  // floats from one to the next
  int rowCount;
  const float* panels;
  int depth;  // products of a sum
  int columnCount;
  const float* bias;  // of every column, up to a multiple of 16; or null
  float* results;
  std::ptrdiff_t resultStride;
  bool adds;  // to what is there
  bool relu;
};

/// An image of a block of channels, of pixels that are sums of products: pixel (y, x) of those at every line's place of
/// y and every column's place of x together. Places are in floats; those of line y are [lineStarts[y], lineStarts[y +
/// 1]) in `linePlaces`, and those of a column likewise.
struct TapSumsCall {
  const float* products;
  const std::int32_t *lineStarts, *linePlaces, *columnStarts, *columnPlaces;
  float* result;
  int height, width;
  bool adds;           // to what is there
  bool isNonTemporal;  // non-temporally, unless it adds
};

/// One line of outputs of pooling, of one block of channels.
struct PoolLine {
  std::ptrdiff_t ahead;      // floats from the first line of the windows to what the next line of outputs reads first
  int linesAhead;            // of the image, to be fetched while this line is pooled
  std::ptrdiff_t inputLine;  // floats from line to line
  int lines;                 // of the windows that are inside the image
  int width;                 // of the image
  int kernel, stride, pad;   // in the line
  int outputs;
  // Forward: the same line of several blocks, and floats from one to the next.
  int planes;
  std::ptrdiff_t inputPlane, outputPlane;
  bool isTiling;  // backward: every pixel is in one window, so gradients are written and not added
  // For windows of three: how many lines of theirs hold sums already, to which is added, and how many no later window
  // has.
  int added, finished;
  bool isNonTemporal;  // what is written is stored non-temporally
  bool isLast;         // of its blocks
};

/// Whether a result of that size is stored non-temporally: it would push itself out of them before anybody reads
/// it, and reading lines only to overwrite them would be in vain.
constexpr bool isTooLargeForCaches(std::size_t bytes) { return bytes > 8 * 1024 * 1024; }

/// At which a sum over pixels is read at the same time.
inline constexpr int pixelPlaces = 8;

struct LayerKernels {
  std::string_view isa;  // as in conv::KernelSet
  /// Mean and sum of squared distances from it, for each channel of a block.
  void (*moments)(const float* input, std::ptrdiff_t pixels, float* mean, float* squares);
  /// Sums of the output's gradient, and of it times (input - mean).
  void (*gradientSums)(const float* input, const float* outputGradient, std::ptrdiff_t pixels, const float* mean,
                       float* sum, float* product);
  void (*normalize)(const NormalizeCall& call);
  void (*normalizeGradient)(const NormalizeGradientCall& call);
  void (*response)(const ResponseCall& call);
  void (*responseGradient)(const ResponseCall& call);
  void (*dropout)(const DropoutCall& call);
  // For channel-wise convolutions, one tap of one line: sum += gradient * input, and input += gradient * weights.
  // Output pixels follow each other, input pixels are `inputPixel` floats apart; `sum` and `weights` are of a block.
  void (*sumProducts)(const float* gradient, const float* input, std::ptrdiff_t inputPixel, std::ptrdiff_t pixels,
                      float* sum);
  void (*addProducts)(const float* gradient, const float* weights, float* input, std::ptrdiff_t inputPixel,
                      std::ptrdiff_t pixels);
  void (*sumTaps)(const TapSumsCall& call);
  // `from` and `to` do not overlap.
  void (*fromBfloat16)(const std::uint16_t* from, float* to, std::size_t count, bool isNonTemporal);
  void (*toBfloat16)(const float* from, std::uint16_t* to, std::size_t count, bool isNonTemporal);
  // A block of 16 channels out of planes of NCHW that are `plane` floats apart, and back.
  void (*toBlocks)(const float* planes, std::ptrdiff_t plane, int channels, float* block, std::ptrdiff_t pixels,
                   bool isNonTemporal);
  void (*fromBlocks)(const float* block, float* planes, std::ptrdiff_t plane, int channels, std::ptrdiff_t pixels,
                     bool isNonTemporal);
  // Rows of weights in KCRS and a block of 16 of them: row k, of `ins` input channels and `taps` each, is at
  // rows + k * row, and its weight of channel c and tap t is number k of block + (t * ins + c) * 16. `adds`: to what is
  // in the rows.
  void (*toTaps)(const float* rows, std::ptrdiff_t row, int ins, int taps, float* block);
  void (*fromTaps)(const float* block, float* rows, std::ptrdiff_t row, int ins, int taps, bool adds);
  // Inputs of pooling begin with the first line that is in the windows. Gradients are added to the input's,
  // unless windows are tiles.
  void (*poolMax)(const PoolLine& line, const float* input, float* output);
  void (*poolAverage)(const PoolLine& line, const float* input, float* output);
  void (*poolMaxGradient)(const PoolLine& line, const float* input, const float* output, const float* outputGradient,
                          float* inputGradient);
  void (*poolAverageGradient)(const PoolLine& line, const float* outputGradient, float* inputGradient);
  /// For windows of three columns that are two apart, and no more lines: writes all of their lines of the image.
  void (*poolMaxGradientThree)(const PoolLine& line, const float* input, const float* output,
                               const float* outputGradient, float* inputGradient);
  /// For windows of three columns that are one apart: one line of the image's gradient. `line` is the window of lines
  /// of outputGradient that have that line in theirs, with one over their number of lines in `shares`; its padding is
  /// two less that of the windows, its outputs are the image's columns.
  void (*poolAverageGradientThree)(const PoolLine& line, const float* shares, const float* outputGradient,
                                   float* inputGradient);
  void (*reluBackward)(const float* output, const float* outputGradient, float* inputGradient, std::size_t count,
                       bool isNonTemporal);
  /// sum += the sums over `pixels` pixels at each of pixelPlaces places, which are `apart` floats from each other;
  /// `sum` is of a block.
  void (*addPixels)(const float* from, std::ptrdiff_t pixels, std::ptrdiff_t apart, float* sum);
  void (*innerProducts)(const InnerProductCall& call);
  void (*panelProducts)(const PanelProductCall& call);
  /// to[c * toRow + r] = from[r * fromRow + c], of so many rows and columns of `from`.
  void (*transpose)(const float* from, std::ptrdiff_t fromRow, int rows, int columns, float* to, std::ptrdiff_t toRow,
                    bool isNonTemporal);
  /// Rows of so many columns, one right behind the other, with zeros up to a multiple of 16.
  void (*gatherRows)(const float* from, std::ptrdiff_t fromRow, int rows, int columns, float* to, bool isNonTemporal);
  /// results[r][i] (+)= column[r] * block[i], of blocks of 16 that follow each other.
  void (*outerProduct)(const float* column, std::ptrdiff_t rows, const float* block, float* results, bool adds);
  void (*sgdMomentum)(float* weights, float* velocity, const float* gradient, std::size_t count, float rate,
                      float momentum, float decay);
};

/// The table for the vectors of a conv::KernelSet (KernelSet::vectors). An Error (taccInternalError) for any others.
const LayerKernels& kernelTable(std::string_view vectors);

#define TACC_DECLARE(set, isThere) const LayerKernels& set##Table();
TACC_KERNEL_SETS(TACC_DECLARE)
#undef TACC_DECLARE

}  // namespace tacc::layers
