// Transposes: of matrices, and between planes of channels (NCHW) and blocks of 16 channels. Included by one file per
// instruction set, as table-inl.hpp.
#include <utility>

#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

using Square = Vector[TACC_LANES];

/// Exchanges the squares of kHalf x kHalf numbers off the diagonal, of all squares of twice that size.
template <int kHalf>
[[gnu::always_inline]] inline void exchange(Square& rows) {
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) {
    if ((i & kHalf) != 0) continue;
    const Vector a = rows[i];
    const Vector b = rows[i + kHalf];
    [&]<int... kLane>(std::integer_sequence<int, kLane...>) __attribute__((always_inline)) {
      rows[i] = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane : TACC_LANES + kLane - kHalf)...);
      rows[i + kHalf] = __builtin_shufflevector(a, b, ((kLane & kHalf) == 0 ? kLane + kHalf : TACC_LANES + kLane)...);
    }
    (std::make_integer_sequence<int, TACC_LANES>());
  }
  if constexpr (kHalf > 1) exchange<kHalf / 2>(rows);
}

/// A square of a matrix, or what there is of it at the ends.
template <bool kIsWhole>
[[gnu::always_inline]] inline void transposeSquare(const float* from, std::ptrdiff_t fromRow, int rows, int columns,
                                                   float* to, std::ptrdiff_t toRow, bool isNonTemporal) {
  Square square;
  const PartOfVector ofColumns(columns), ofRows(rows);
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) {
    if constexpr (kIsWhole) {
      square[i] = load(from + i * fromRow);
    } else {
      square[i] = i < rows ? ofColumns.load(from + i * fromRow) : Vector{};
    }
  }
  exchange<TACC_LANES / 2>(square);
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) {
    if constexpr (kIsWhole) {
      put(to + i * toRow, square[i], isNonTemporal);
    } else if (i < columns) {
      ofRows.store(to + i * toRow, square[i]);
    }
  }
}

inline void transpose(const float* from, std::ptrdiff_t fromRow, int rows, int columns, float* to, std::ptrdiff_t toRow,
                      bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(to) && toRow % TACC_LANES == 0;
  for (int r = 0; r < rows; r += TACC_LANES) {
    const float* const row = from + r * fromRow;
    for (int c = 0; c < columns; c += TACC_LANES) {
      float* const at = to + c * toRow + r;
      if (rows - r >= TACC_LANES && columns - c >= TACC_LANES) {
        transposeSquare<true>(row + c, fromRow, TACC_LANES, TACC_LANES, at, toRow, isNonTemporal);
      } else {
        transposeSquare<false>(row + c, fromRow, rows - r, columns - c, at, toRow, false);
      }
    }
  }
  if (isNonTemporal) endNonTemporal();
}

inline void gatherRows(const float* from, std::ptrdiff_t fromRow, int rows, int columns, float* to, bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(to);
  for (int r = 0; r < rows; ++r, from += fromRow) {
    int c = 0;
    for (; c + TACC_LANES <= columns; c += TACC_LANES, to += TACC_LANES) put(to, load(from + c), isNonTemporal);
    for (; c % blockLength != 0 || c < columns; c += TACC_LANES, to += TACC_LANES)
      put(to, PartOfVector(columns - c).load(from + c), isNonTemporal);
  }
  if (isNonTemporal) endNonTemporal();
}

/// Squares of planes of channels and of blocks; of the channels from `first` on there are `channels`, or all of a
/// square.
template <bool kIsWhole>
[[gnu::always_inline]] inline void squareToBlock(const float* planes, std::ptrdiff_t plane, int channels, float* block,
                                                 bool isNonTemporal) {
  Square rows;
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) rows[i] = kIsWhole || i < channels ? load(planes + i * plane) : Vector{};
  exchange<TACC_LANES / 2>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) put(block + i * blockLength, rows[i], isNonTemporal);
}
template <bool kIsWhole>
[[gnu::always_inline]] inline void squareToPlanes(const float* block, float* planes, std::ptrdiff_t plane, int channels,
                                                  bool isNonTemporal) {
  Square rows;
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) rows[i] = load(block + i * blockLength);
  exchange<TACC_LANES / 2>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < TACC_LANES; ++i) {
    if (kIsWhole || i < channels) put(planes + i * plane, rows[i], isNonTemporal);
  }
}

/// Calls square(first pixel, first channel) for all squares of lanes x lanes of a block. The last ones begin earlier
/// where pixels are no multiple of that many. Returns the pixels that are done: all of them, unless there are too few.
template <class Square>
[[gnu::always_inline]] inline std::ptrdiff_t forEachSquare(std::ptrdiff_t pixels, const Square& square) {
  if (pixels < TACC_LANES) return 0;
  for (std::ptrdiff_t p = 0; p < pixels; p += TACC_LANES) {
    const std::ptrdiff_t from = p + TACC_LANES <= pixels ? p : pixels - TACC_LANES;
    for (int first = 0; first < blockLength; first += TACC_LANES) square(from, first);
  }
  return pixels;
}

inline void toBlocks(const float* planes, std::ptrdiff_t plane, int channels, float* block, std::ptrdiff_t pixels,
                     bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(block);
  std::ptrdiff_t p = forEachSquare(
      pixels, [&](std::ptrdiff_t at, int first) __attribute__((always_inline)) {
        const float* const from = planes + first * plane + at;
        float* const to = block + at * blockLength + first;
        if (channels - first >= TACC_LANES) {
          squareToBlock<true>(from, plane, 0, to, isNonTemporal);
        } else {
          squareToBlock<false>(from, plane, channels - first, to, isNonTemporal);
        }
      });
  if (isNonTemporal) endNonTemporal();
  for (; p < pixels; ++p) {
    for (int c = 0; c < blockLength; ++c) block[p * blockLength + c] = c < channels ? planes[c * plane + p] : 0;
  }
}

inline void fromBlocks(const float* block, float* planes, std::ptrdiff_t plane, int channels, std::ptrdiff_t pixels,
                       bool pastCaches) {
  const bool isNonTemporal = pastCaches && isAligned(planes) && plane % TACC_LANES == 0 && pixels % TACC_LANES == 0;
  std::ptrdiff_t p = forEachSquare(
      pixels, [&](std::ptrdiff_t at, int first) __attribute__((always_inline)) {
        const float* const from = block + at * blockLength + first;
        float* const to = planes + first * plane + at;
        if (channels - first >= TACC_LANES) {
          squareToPlanes<true>(from, to, plane, 0, isNonTemporal);
        } else {
          squareToPlanes<false>(from, to, plane, channels - first, isNonTemporal);
        }
      });
  if (isNonTemporal) endNonTemporal();
  for (; p < pixels; ++p) {
    for (int c = 0; c < channels; ++c) planes[c * plane + p] = block[p * blockLength + c];
  }
}

/// Where the block's vectors for the weights of a row are, one after the other.
class TapPlaces {
 public:
  [[gnu::always_inline]] TapPlaces(int ins, int taps, std::ptrdiff_t weight)
      : ins_(ins), taps_(taps), channel_(static_cast<int>(weight / taps)), tap_(static_cast<int>(weight % taps)) {}
  [[gnu::always_inline]] std::ptrdiff_t next() {
    const std::ptrdiff_t place = (std::ptrdiff_t{tap_} * ins_ + channel_) * blockLength;
    if (++tap_ == taps_) {
      tap_ = 0;
      ++channel_;
    }
    return place;
  }

 private:
  int ins_, taps_, channel_, tap_;
};

inline void toTaps(const float* rows, std::ptrdiff_t row, int ins, int taps, float* block) {
  const std::ptrdiff_t weights = std::ptrdiff_t{ins} * taps;
  const std::ptrdiff_t done = forEachSquare(
      weights, [&](std::ptrdiff_t at, int first) __attribute__((always_inline)) {
        Square square;
#pragma GCC unroll 16
        for (int i = 0; i < TACC_LANES; ++i) square[i] = load(rows + (first + i) * row + at);
        exchange<TACC_LANES / 2>(square);
        TapPlaces places(ins, taps, at);
#pragma GCC unroll 16
        for (int i = 0; i < TACC_LANES; ++i) store(block + places.next() + first, square[i]);
      });
  TapPlaces places(ins, taps, done);
  for (std::ptrdiff_t i = done; i < weights; ++i) {
    float* const to = block + places.next();
    for (int k = 0; k < blockLength; ++k) to[k] = rows[k * row + i];
  }
}

/// Rows that follow each other and are shorter than a vector: each is stored as one, and the next one over its rest.
inline void fromShortRows(const float* block, float* rows, int ins, int taps) {
  const int weights = ins * taps;
  for (int first = 0; first < blockLength; first += TACC_LANES) {
    Square square;
    TapPlaces places(ins, taps, 0);
#pragma GCC unroll 16
    for (int i = 0; i < TACC_LANES; ++i) square[i] = i < weights ? load(block + places.next() + first) : Vector{};
    exchange<TACC_LANES / 2>(square);
    const int whole = blockLength - (TACC_LANES + weights - 1) / weights;  // the last row that a vector fits behind
#pragma GCC unroll 16
    for (int i = 0; i < TACC_LANES; ++i) {
      float* const to = rows + (first + i) * weights;
      if (first + i <= whole) {
        store(to, square[i]);
      } else {
        for (int w = 0; w < weights; ++w) to[w] = square[i][w];
      }
    }
  }
}

inline void fromTaps(const float* block, float* rows, std::ptrdiff_t row, int ins, int taps, bool adds) {
  const std::ptrdiff_t weights = std::ptrdiff_t{ins} * taps;
  if (weights < TACC_LANES && row == weights && !adds) return fromShortRows(block, rows, ins, taps);
  // What is added to is gone through once.
  const std::ptrdiff_t inSquares = adds ? weights / TACC_LANES * TACC_LANES : weights;
  const std::ptrdiff_t done = forEachSquare(
      inSquares, [&](std::ptrdiff_t at, int first) __attribute__((always_inline)) {
        Square square;
        TapPlaces places(ins, taps, at);
#pragma GCC unroll 16
        for (int i = 0; i < TACC_LANES; ++i) square[i] = load(block + places.next() + first);
        exchange<TACC_LANES / 2>(square);
#pragma GCC unroll 16
        for (int i = 0; i < TACC_LANES; ++i) {
          float* const to = rows + (first + i) * row + at;
          store(to, adds ? load(to) + square[i] : square[i]);
        }
      });
  TapPlaces places(ins, taps, done);
  for (std::ptrdiff_t i = done; i < weights; ++i) {
    const float* const from = block + places.next();
    for (int k = 0; k < blockLength; ++k) rows[k * row + i] = adds ? rows[k * row + i] + from[k] : from[k];
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
