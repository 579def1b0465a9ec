// float32 products on units that multiply bfloat16: AMX's tiles.
//
// A float32 is the sum of three bfloat16 of 8 bits each, high, middle and low. Of the nine products of two such sums
// six are computed: high-high, high-middle, middle-high, middle-middle, high-low, low-high. They are exact in float32
// and so are added up; the other three are at most 2^-22 of the product, and without bias. So the error of a sum is
// that of float32 (docs/understand/compute.md has what was measured), at a sixth of the rate of bfloat16, which is 16
// times that of AVX-512.
//
// Numbers that are bfloat16 themselves are one part, and their products one of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tacc/compute.h"

namespace tacc::conv {

inline constexpr int splitParts = 3;            // of a float32
inline constexpr int tileRows = 16;             // of a tile: positions, or channels
inline constexpr std::ptrdiff_t rowBytes = 64;  // 32 bfloat16, 16 pairs
inline constexpr std::ptrdiff_t tileBytes = tileRows * rowBytes;
inline constexpr int tileFloats = 256;
inline constexpr int lanesOfRun = 64;  // Bf16x3Run::lanes

/// Pixels that follow each other in memory, and the rows that they become: pair k of a row is number k of the pixel in
/// two blocks of channels, or numbers 2k and 2k + 1 of both, one after the other (Bf16x3Kernels::ofBfloat16).
struct Bf16x3Run {
  std::ptrdiff_t row;     // of the first one
  std::ptrdiff_t source;  // where the first pixel is, in numbers
  int rows;
  std::uint64_t lanes = ~std::uint64_t{0};  // of 64 numbers that follow each other, those that are in the image
};

/// Rows that are still to be split, from `at` to `rows`. Row i of a run is made of even[source + i * evenStep ...] and
/// the same of `odd`; rows between runs are zeros. Of what kind the numbers are the kernels say.
struct Bf16x3Work {
  const Bf16x3Run* run = nullptr;
  const Bf16x3Run* end = nullptr;
  std::ptrdiff_t at = 0, rows = 0;
  const Bf16x3Run* fetchRun = nullptr;  // the first one that is not brought into the cache yet; at first `run`
  std::ptrdiff_t fetched = 0;           // and its rows
  const void* even = nullptr;
  const void* odd = nullptr;
  std::ptrdiff_t evenStep = 0, oddStep = 0;  // numbers; with an oddStep of 0 all odd numbers are those at `odd`
  std::uint16_t evenMask = 0xFFFF, oddMask = 0xFFFF;  // which of the 16 there are; others are not read, and zeros
  int firstLane = 0;                                  // of Bf16x3Run::lanes
  std::byte* output = nullptr;                        // row 0
  std::ptrdiff_t partStep = 0;                        // bytes to the row's middle part, and from there to its low one
  bool leavesGaps = false;                            // rows between runs stay as they are: nobody reads their sums
};

/// 32 rows of split pixels, of pairs of channels, become a tile for each of both blocks of channels, whose pairs are
/// two rows that follow each other: for sums over pixels.
struct RegroupCall {
  const std::byte* rows;
  std::ptrdiff_t rowsPart;  // bytes from part to part
  std::byte* even;          // of the first block
  std::byte* odd;           // of the second one, or null
  std::ptrdiff_t outputPart;
};

/// What is still to be delivered of the sums of some tiles:
///   output(position, block n) = epilogue(sums[m][n] + bias[n] + addend), rows being positions of 16 channels.
struct DeliverWork {
  float* sums = nullptr;
  int position = 0, block = 0;              // the next one
  int positions = 0;                        // of the tiles, side by side, that there are
  int blocks = 0;                           // block == blocks: done
  const std::ptrdiff_t* outputs = nullptr;  // where each position is, in numbers from `output`; negative: nowhere
  const std::uint8_t* areRuns = nullptr;    // of each tile of positions, whether they are pixels that follow each other
  const float* bias = nullptr;              // or null
  const void* addend = nullptr;             // laid out as the output and may be it; or null
  void* output = nullptr;
  std::ptrdiff_t outputBlock = 0;   // numbers from block to block
  std::ptrdiff_t outputPixel = 0;   // and from a pixel to the next one of a line
  std::uint16_t lastMask = 0xFFFF;  // which channels of the last block there are
  taccActivation_t activation = taccActivationNone;
  bool isNonTemporal = false;  // non-temporally, unless something is added
};

/// What the vector units do while the tiles multiply, a little after each product of a step.
struct Chores {
  DeliverWork* deliver;  // of the tiles before
  bool areInTiles;       // its sums are still there: they have to be stored first
  Bf16x3Work* split;     // may be null if there are no rows
  int splitRows;         // for one call
};

/// Sums of products of tiles: sums[m][n] = sum over steps of a[m] * b[n], all products of the parts.
struct ProductCall {
  const std::byte* a;
  std::ptrdiff_t aRow, aPart, aTile;  // bytes
  const std::ptrdiff_t* aSteps;       // bytes from `a`, one for each step
  const std::byte* b;                 // rows of 64 bytes, one after the other
  std::ptrdiff_t bPart, bTile, bStep;
  int steps;
  std::ptrdiff_t fetchAt;  // bytes from `b` from where on lines of the cache are brought into the second one
  int fetchLines;          // in each step
  // Rows that a later call reads, as many lines each as there are steps: a line of each is brought there in a step.
  const std::byte* rowsAhead;
  int rowsAheadCount;
  float* sums;  // 4 tiles of 16 x 16, then [m][n]; aligned to 64 bytes
};

struct Bf16x3Kernels {
  int parts;                // of a number: 3 of float32, 1 of bfloat16
  std::size_t numberBytes;  // of what is split, added and delivered
  /// The next rows, `rows` of them or what is left.
  void (*split)(Bf16x3Work& work, int rows);
  /// A row of a tile is a pair of 16 channels, or, transposed, a channel of 16 pairs.
  void (*regroup)(const RegroupCall&);
  void (*transpose)(const RegroupCall&);
  /// Tiles [m][n] of sums become transposed ones [n][m].
  void (*turn)(const float* sums, int rows, int columns, float* turned);
  /// Before the first product of a thread's task, and after the last: the tiles are state that switches of threads have
  /// to save.
  void (*begin)();
  void (*beginHalves)();  // the same for products whose rows are the first 32 bytes: a block of channels
  void (*end)();
  /// [tiles of a][tiles of b]: 1 to 4 with 1, 1 or 2 with 2. What is to be delivered is delivered at the end.
  void (*multiply[5][3])(const ProductCall&, const Chores&);
  void (*deliver)(DeliverWork&);
  /// Where it is not null, 2 tiles with 2, and 4 with 1, leave their sums in the tiles, and this stores them.
  void (*storeSums)(float* sums);
  // On the same units; of these themselves null. Pairs of the first are channels that follow each other, so rows are
  // copies; those of gradients are of two blocks, as those of float32 are.
  const Bf16x3Kernels* ofBfloat16;
  const Bf16x3Kernels* ofBfloat16Gradients;
  void (*products)(int count) = nullptr;  // does nothing but products of tiles, for their pace
};

#if defined(__x86_64__)
/// Null where this CPU, or its kernel, has no AMX for bfloat16. The first call asks the kernel for it, for the process.
const Bf16x3Kernels* amxKernels();
#endif

}  // namespace tacc::conv
