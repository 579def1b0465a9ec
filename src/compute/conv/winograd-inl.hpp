// Winograd's transforms of one tile for a block of channels: F(2x2, 3x3) and F(4x4, 3x3). Included by one file per
// instruction set, as tile-inl.hpp.
#include "compute/conv/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// The transforms in one dimension for tiles of kOut outputs: kOut + 2 inputs give as many products, which give the
/// outputs. Interpolation points 0, 1, -1, and for four outputs 2, -2; and infinity.
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
    const Vector oddTwo = 2 * (d[3] - d[1]);
    t[0] = 4 * d[0] - 5 * d[2] + d[4];
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = evenTwo + oddTwo;
    t[4] = evenTwo - oddTwo;
    t[5] = 4 * d[1] - 5 * d[3] + d[5];
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

template <int kOut>
void winogradInput(const WinogradInputCall& call) {
  constexpr int kIn = kOut + 2;
#pragma GCC unroll 4
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Vector half[kIn][kIn];
    for (int x = 0; x < kIn; ++x) {
      Vector column[kIn];
      Vector transformed[kIn];
#pragma GCC unroll 8
      for (int y = 0; y < kIn; ++y) column[y] = load(call.input + y * call.inputLine + x * blockLength + lane);
      Winograd<kOut>::input(column, transformed);
#pragma GCC unroll 8
      for (int y = 0; y < kIn; ++y) half[y][x] = transformed[y];
    }
    for (int y = 0; y < kIn; ++y) {
      Vector transformed[kIn];
      Winograd<kOut>::input(half[y], transformed);
#pragma GCC unroll 8
      for (int x = 0; x < kIn; ++x) store(call.output + (y * kIn + x) * call.outputPoint + lane, transformed[x]);
    }
  }
}

template <int kOut>
void winogradOutput(const WinogradOutputCall& call) {
  constexpr int kIn = kOut + 2;
#pragma GCC unroll 4
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Vector half[kOut][kIn];
    for (int x = 0; x < kIn; ++x) {
      Vector column[kIn];
      Vector transformed[kOut];
#pragma GCC unroll 8
      for (int y = 0; y < kIn; ++y) column[y] = load(call.input + (y * kIn + x) * call.inputPoint + lane);
      Winograd<kOut>::output(column, transformed);
#pragma GCC unroll 8
      for (int y = 0; y < kOut; ++y) half[y][x] = transformed[y];
    }
    const Vector bias = call.bias != nullptr ? load(call.bias + lane) : Vector{};
    for (int y = 0; y < call.lines; ++y) {
      Vector line[kOut];
      Winograd<kOut>::output(half[y], line);
#pragma GCC unroll 8
      for (int x = 0; x < kOut; ++x) {
        if (x >= call.pixels) break;
        const std::ptrdiff_t at = y * call.outputLine + x * blockLength + lane;
        Vector value = line[x] + bias;
        if (call.addend != nullptr) value += load(call.addend + at);
        if (call.relu) value = maximum(value, Vector{});
        store(call.output + at, value);
      }
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::conv
