// Winograd's transforms of tiles of one block of channels: F(m x m, 3x3) for m = 2, 4, 5 and 6. Included by one
// file per instruction set, as tile-inl.hpp.
//
// They are made a few lines of products at a time: what these need of the other dimension fits into the registers, and
// reading a pixel twice from the L1 cache costs less than storing it in between.
#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// The transforms in one dimension for tiles of kOut outputs: kOut + 2 inputs give as many products, which give the
/// outputs. Interpolation points 0, 1, -1, for four outputs 2, -2, for five also 1/2, for six -1/2; and infinity. As
/// many additions as multiply-adds where that costs nothing: CPUs have units for either.
template <int kOut>
struct Winograd;

template <>
struct Winograd<2> {
  [[gnu::always_inline]] static void input(const Vector (&d)[4], Vector (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  [[gnu::always_inline]] static void output(const Vector (&m)[4], Vector (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
};

template <>
struct Winograd<4> {
  [[gnu::always_inline]] static void input(const Vector (&d)[6], Vector (&t)[6]) {
    const Vector even = d[4] - 4 * d[2];
    const Vector odd = d[3] - 4 * d[1];
    const Vector evenTwo = d[4] - d[2];
    const Vector oddTwo = d[3] - d[1];
    t[0] = evenTwo + 4 * (d[0] - d[2]);
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = evenTwo + 2 * oddTwo;
    t[4] = evenTwo - 2 * oddTwo;
    t[5] = (d[5] - d[3]) - 4 * oddTwo;
  }
  [[gnu::always_inline]] static void output(const Vector (&m)[6], Vector (&y)[4]) {
    const Vector sum = m[1] + m[2];
    const Vector difference = m[1] - m[2];
    const Vector sumTwo = m[3] + m[4];
    const Vector differenceTwo = m[3] - m[4];
    y[0] = m[0] + sum + sumTwo;
    y[1] = difference + 2 * differenceTwo;
    y[2] = sum + 4 * sumTwo;
    y[3] = difference + 8 * differenceTwo + m[5];
  }
};

template <>
struct Winograd<5> {
  [[gnu::always_inline]] static void input(const Vector (&d)[7], Vector (&t)[7]) {
    // The factors of the points' polynomials: x - 1/2 first, then x * x - 4 and x * x - 1.
    const Vector half1 = d[2] - 0.5F * d[1];
    const Vector half2 = d[3] - 0.5F * d[2];
    const Vector half3 = d[4] - 0.5F * d[3];
    const Vector half4 = d[5] - 0.5F * d[4];
    const Vector one = half3 - 4 * half1;
    const Vector oneNext = half4 - 4 * half2;
    const Vector two = half3 - half1;
    const Vector twoNext = half4 - half2;
    const Vector even = (d[4] + 4 * d[0]) - 5 * d[2];
    const Vector odd = (d[5] + 4 * d[1]) - 5 * d[3];
    const Vector last = (d[6] + 4 * d[2]) - 5 * d[4];
    t[0] = odd - 0.5F * even;
    t[1] = oneNext + one;
    t[2] = oneNext - one;
    t[3] = twoNext + 2 * two;
    t[4] = twoNext - 2 * two;
    t[5] = odd;
    t[6] = last - 0.5F * odd;
  }
  [[gnu::always_inline]] static void output(const Vector (&m)[7], Vector (&y)[5]) {
    const Vector sum = m[1] + m[2];
    const Vector difference = m[1] - m[2];
    const Vector sumTwo = m[3] + m[4];
    const Vector differenceTwo = m[3] - m[4];
    y[0] = m[0] + sum + (sumTwo + m[5]);
    y[1] = difference + 2 * differenceTwo + 0.5F * m[5];
    y[2] = sum + 4 * sumTwo + 0.25F * m[5];
    y[3] = difference + 8 * differenceTwo + 0.125F * m[5];
    y[4] = sum + 16 * sumTwo + (m[6] + 0.0625F * m[5]);
  }
};

template <>
struct Winograd<6> {
  [[gnu::always_inline]] static void input(const Vector (&d)[8], Vector (&t)[8]) {
    const Vector even = (d[2] + d[6]) - 4.25F * d[4];
    const Vector odd = (d[1] + d[5]) - 4.25F * d[3];
    const Vector evenTwo = (d[6] + 0.25F * d[2]) - 1.25F * d[4];
    const Vector oddTwo = 2 * d[5] + (0.5F * d[1] - 2.5F * d[3]);
    const Vector evenHalf = (d[6] + 4 * d[2]) - 5 * d[4];
    const Vector oddHalf = 2 * d[1] + (0.5F * d[5] - 2.5F * d[3]);
    t[0] = (d[0] - d[6]) + 5.25F * (d[4] - d[2]);
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = evenTwo + oddTwo;
    t[4] = evenTwo - oddTwo;
    t[5] = evenHalf + oddHalf;
    t[6] = evenHalf - oddHalf;
    t[7] = (d[7] - d[1]) + 5.25F * (d[3] - d[5]);
  }
  [[gnu::always_inline]] static void output(const Vector (&m)[8], Vector (&y)[6]) {
    const Vector sum = m[1] + m[2];
    const Vector difference = m[1] - m[2];
    const Vector sumTwo = m[3] + m[4];
    const Vector differenceTwo = m[3] - m[4];
    const Vector sumHalf = m[5] + m[6];
    const Vector differenceHalf = m[5] - m[6];
    y[0] = (m[0] + sum) + (sumTwo + sumHalf);
    y[1] = difference + 2 * differenceTwo + 0.5F * differenceHalf;
    y[2] = sum + 4 * sumTwo + 0.25F * sumHalf;
    y[3] = difference + 8 * differenceTwo + 0.125F * differenceHalf;
    y[4] = sum + 16 * sumTwo + 0.0625F * sumHalf;
    y[5] = difference + 32 * differenceTwo + (m[7] + 0.03125F * differenceHalf);
  }
};

/// What lines outside the image are read from.
alignas(64) constexpr float zeroLine[8 * blockLength] = {};

/// Lines kFirst and kFirst + kStep of a tile's products; one if kStep is 0. Of the input columns [from, to) are in the
/// image.
template <int kOut, bool kIsRim, int kFirst, int kStep>
[[gnu::always_inline]] inline void inputLines(const float* const (&lines)[kOut + 2], int from, int to, float* output,
                                              std::ptrdiff_t point) {
  constexpr int kIn = kOut + 2;
  constexpr int kCount = kStep == 0 ? 1 : 2;
  Vector half[kCount][kIn];
#pragma GCC unroll 8
  for (int x = 0; x < kIn; ++x) {
    if (kIsRim && (x < from || x >= to)) {
#pragma GCC unroll 2
      for (int k = 0; k < kCount; ++k) half[k][x] = Vector{};
      continue;
    }
    Vector column[kIn];
    Vector transformed[kIn];  // what is not used of it is not computed
#pragma GCC unroll 8
    for (int y = 0; y < kIn; ++y) column[y] = load(lines[y] + x * blockLength);
    Winograd<kOut>::input(column, transformed);
#pragma GCC unroll 2
    for (int k = 0; k < kCount; ++k) half[k][x] = transformed[kFirst + k * kStep];
  }
#pragma GCC unroll 2
  for (int k = 0; k < kCount; ++k) {
    Vector transformed[kIn];
    Winograd<kOut>::input(half[k], transformed);
#pragma GCC unroll 8
    for (int x = 0; x < kIn; ++x) store(output + ((kFirst + k * kStep) * kIn + x) * point, transformed[x]);
  }
}

template <int kOut, bool kIsRim>
[[gnu::always_inline]] inline void inputTile(const float* const (&lines)[kOut + 2], int from, int to, float* output,
                                             std::ptrdiff_t point) {
  inputLines<kOut, kIsRim, 0, kOut == 5 ? 5 : 0>(lines, from, to, output, point);
  inputLines<kOut, kIsRim, 1, 1>(lines, from, to, output, point);
  if constexpr (kOut >= 4) inputLines<kOut, kIsRim, 3, 1>(lines, from, to, output, point);
  if constexpr (kOut == 6) inputLines<kOut, kIsRim, 5, 1>(lines, from, to, output, point);
  inputLines<kOut, kIsRim, kOut + 1, 0>(lines, from, to, output, point);
}

/// Tiles whose pixels are fetched before they are transformed.
constexpr int tilesAhead = 2;

/// Brings the pixels of a tile into the L1 cache, those that it shares with the one before excepted. Behind the last
/// tile of a line come those of the line of tiles below.
template <int kOut>
[[gnu::always_inline]] inline void fetchTile(const WinogradInputCall& call, int tile) {
  const bool isBelow = tile >= call.tiles;
  const float* line = call.input + (call.y + (isBelow ? kOut : 0)) * call.inputLine +
                      (call.x + 2 + (isBelow ? tile - call.tiles : tile) * kOut) * std::ptrdiff_t{blockLength};
#pragma GCC unroll 8
  for (int y = 0; y < kOut + 2; ++y, line += call.inputLine) {
#pragma GCC unroll 8
    for (int x = 0; x < kOut; ++x) __builtin_prefetch(line + x * blockLength);
  }
}

template <int kOut>
void winogradInput(const WinogradInputCall& call) {
  constexpr int kIn = kOut + 2;
  for (int t = 0; t < call.tiles; ++t) {
    fetchTile<kOut>(call, t + tilesAhead);
    const int left = call.x + t * kOut;
    const int from = left < 0 ? -left : 0;
    const int to = call.width - left < kIn ? call.width - left : kIn;
    for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
      const float* lines[kIn];
#pragma GCC unroll 8
      for (int y = 0; y < kIn; ++y) {
        const int line = call.y + y;
        const bool isInside = line >= 0 && line < call.height;
        lines[y] =
            (isInside ? call.input + line * call.inputLine + left * std::ptrdiff_t{blockLength} : zeroLine) + lane;
      }
      float* const output = call.output + t * blockLength + lane;
      if (from == 0 && to == kIn) {
        inputTile<kOut, false>(lines, 0, kIn, output, call.outputPoint);
      } else {
        inputTile<kOut, true>(lines, from, to, output, call.outputPoint);
      }
    }
  }
}

/// Lines kFirst, kFirst + kStep and so on of a tile's outputs, kCount of them, as far as they are inside the image.
template <int kOut, bool kIsWhole, int kFirst, int kStep, int kCount>
[[gnu::always_inline]] inline void outputLines(const WinogradOutputCall& call, const float* input, std::ptrdiff_t at,
                                               int pixels, Vector bias) {
  constexpr int kIn = kOut + 2;
  Vector half[kCount][kIn];
#pragma GCC unroll 8
  for (int x = 0; x < kIn; ++x) {
    Vector column[kIn];
    Vector transformed[kOut];  // what is not used of it is not computed
#pragma GCC unroll 8
    for (int y = 0; y < kIn; ++y) column[y] = load(input + (y * kIn + x) * call.inputPoint);
    Winograd<kOut>::output(column, transformed);
#pragma GCC unroll 3
    for (int k = 0; k < kCount; ++k) half[k][x] = transformed[kFirst + k * kStep];
  }
#pragma GCC unroll 3
  for (int k = 0; k < kCount; ++k) {
    if (!kIsWhole && kFirst + k * kStep >= call.lines) break;
    Vector line[kOut];
    Winograd<kOut>::output(half[k], line);
#pragma GCC unroll 8
    for (int x = 0; x < kOut; ++x) {
      if (!kIsWhole && x >= pixels) break;
      const std::ptrdiff_t to = at + (kFirst + k * kStep) * call.outputLine + x * blockLength;
      Vector value = line[x] + bias;
      if (call.addend != nullptr) value += load(call.addend + to);
      value = activated(call.activation, value);
      if (call.isNonTemporal) {
        stream(call.output + to, value);
      } else {
        store(call.output + to, value);
      }
    }
  }
}

template <int kOut, bool kIsWhole>
[[gnu::always_inline]] inline void outputTile(const WinogradOutputCall& call, const float* input, std::ptrdiff_t at,
                                              int pixels, Vector bias) {
  if constexpr (kOut > 2) {  // even ones are made of sums, odd ones of differences
    outputLines<kOut, kIsWhole, 0, 2, (kOut + 1) / 2>(call, input, at, pixels, bias);
    outputLines<kOut, kIsWhole, 1, 2, kOut / 2>(call, input, at, pixels, bias);
  } else {
    outputLines<kOut, kIsWhole, 0, 1, 2>(call, input, at, pixels, bias);
  }
}

template <int kOut>
void winogradOutput(const WinogradOutputCall& call) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const Vector bias = call.bias != nullptr ? load(call.bias + lane) : Vector{};
    for (int t = 0; t < call.tiles; ++t) {
      const int pixels = call.pixels - t * kOut;
      const float* const input = call.input + t * blockLength + lane;
      const std::ptrdiff_t at = t * std::ptrdiff_t{kOut * blockLength} + lane;
      if (call.lines >= kOut && pixels >= kOut) {
        outputTile<kOut, true>(call, input, at, pixels, bias);
      } else {
        outputTile<kOut, false>(call, input, at, pixels, bias);
      }
    }
  }
  if (call.isNonTemporal) endNonTemporal();
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
