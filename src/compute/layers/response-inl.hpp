// Local response normalisation across channels. Included by one file per instruction set, as table-inl.hpp.
//
// A strip of pixels walks through the blocks. Of three blocks in a row the squares stand in one line per pixel, so that
// the channels around a vector of channels are loads from it. What is written to a line is read a strip later.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

using Integers [[gnu::vector_size(TACC_LANES * sizeof(std::int32_t))]] = std::int32_t;

/// x to the power `exponent`, for normal x > 0, to about 1e-6 of it.
[[gnu::always_inline]] inline Vector powerOf(Vector x, float exponent) {
  // x = m * 2^e with m around 1; log2(m) = 2 / ln 2 * artanh((m - 1) / (m + 1)).
  constexpr std::int32_t rootOfHalf = 0x3f3504f3;
  const auto bits = reinterpret_cast<Integers>(x);
  const Integers e = (bits - rootOfHalf) >> 23;
  const auto m = reinterpret_cast<Vector>(bits - (e << 23));
  const Vector t = (m - 1.0F) / (m + 1.0F);
  const Vector t2 = t * t;
  const Vector series = 1.0F + t2 * (1.0F / 3 + t2 * (1.0F / 5 + t2 * (1.0F / 7 + t2 * (1.0F / 9))));
  const Vector logarithm = __builtin_convertvector(e, Vector) + 2.885390082F * t * series;
  Vector y = exponent * logarithm;
  const Vector limit = broadcast(126.0F);
  y = y > limit ? limit : y;
  y = y < -limit ? -limit : y;
  // 2^y = 2^n * e^r with |r| <= ln 2 / 2. Adding and taking away 1.5 * 2^23 rounds to a whole number.
  constexpr float rounder = 12582912.0F;
  const Vector whole = (y + rounder) - rounder;
  const Vector r = (y - whole) * 0.6931471806F;
  const Vector fraction =
      1.0F +
      r * (1.0F + r * (1.0F / 2 + r * (1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r * (1.0F / 720 + r / 5040))))));
  const Integers n = __builtin_convertvector(whole, Integers);
  return fraction * reinterpret_cast<Vector>((n + 127) << 23);
}

constexpr int stripLength = 16;          // pixels
constexpr int middle = blockLength;      // where the middle one of three blocks begins in a line
constexpr int newest = 2 * blockLength;  // where the last one does
constexpr int lineLength = 3 * blockLength;

using Strip = float[stripLength][lineLength];

[[gnu::always_inline]] inline void clear(Strip& strip) {
  for (auto& line : strip) {
    for (int i = 0; i < lineLength; i += TACC_LANES) store(line + i, Vector{});
  }
}

/// Makes room for the next block.
[[gnu::always_inline]] inline void shift(float (&line)[lineLength]) {
  for (int i = 0; i < newest; i += TACC_LANES) store(line + i, load(line + i + blockLength));
}

[[gnu::always_inline]] inline Vector sumAround(const float (&line)[lineLength], int lane, int half) {
  Vector sum = load(line + middle + lane);
  for (int i = 1; i <= half; ++i) sum += load(line + middle + lane - i) + load(line + middle + lane + i);
  return sum;
}

/// Puts the squares of block `block` at the end of the lines; zeros after the last block.
[[gnu::always_inline]] inline void pushSquares(const ResponseCall& call, Strip& squares, std::ptrdiff_t from,
                                               int pixels, int block) {
  const float* const x = call.input + block * call.plane + from * blockLength;
  for (int p = 0; p < pixels; ++p) {
    shift(squares[p]);
    for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
      const Vector value = block < call.blocks ? load(x + p * blockLength + lane) : Vector{};
      store(squares[p] + newest + lane, value * value);
    }
  }
}

[[gnu::always_inline]] inline int stripAt(const ResponseCall& call, std::ptrdiff_t from) {
  return call.pixels - from < stripLength ? static_cast<int>(call.pixels - from) : stripLength;
}

inline void response(const ResponseCall& call) {
  Strip squares;
  for (std::ptrdiff_t from = 0; from < call.pixels; from += stripLength) {
    const int pixels = stripAt(call, from);
    clear(squares);
    pushSquares(call, squares, from, pixels, 0);
    for (int block = 0; block < call.blocks; ++block) {
      pushSquares(call, squares, from, pixels, block + 1);
      const std::ptrdiff_t at = block * call.plane + from * blockLength;
      for (int p = 0; p < pixels; ++p) {
        for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
          const Vector scale = call.base + call.share * sumAround(squares[p], lane, call.half);
          const std::ptrdiff_t i = at + p * blockLength + lane;
          store(call.result + i, load(call.input + i) * powerOf(scale, -call.exponent));
        }
      }
    }
  }
}

/// With s the scale of a channel: dx = dy * s^-b - 2 * b * share * x * sum around it of (dy * x * s^(-b - 1)).
inline void responseGradient(const ResponseCall& call) {
  Strip squares, products;
  float powers[2][stripLength][blockLength];  // of the block before and of this one, in turn
  const float factor = 2 * call.exponent * call.share;
  for (std::ptrdiff_t from = 0; from < call.pixels; from += stripLength) {
    const int pixels = stripAt(call, from);
    clear(squares);
    clear(products);
    pushSquares(call, squares, from, pixels, 0);
    for (int block = 0; block <= call.blocks; ++block) {
      const std::ptrdiff_t at = block * call.plane + from * blockLength;
      if (block < call.blocks) pushSquares(call, squares, from, pixels, block + 1);
      for (int p = 0; p < pixels; ++p) {
        shift(products[p]);
        for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
          Vector product{};
          if (block < call.blocks) {
            const Vector scale = call.base + call.share * sumAround(squares[p], lane, call.half);
            const Vector power = powerOf(scale, -call.exponent);
            const std::ptrdiff_t i = at + p * blockLength + lane;
            product = load(call.outputGradient + i) * load(call.input + i) * power / scale;
            store(powers[block % 2][p] + lane, power);
          }
          store(products[p] + newest + lane, product);
        }
      }
      if (block == 0) continue;
      for (int p = 0; p < pixels; ++p) {
        for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
          const std::ptrdiff_t i = at - call.plane + p * blockLength + lane;
          const Vector around = sumAround(products[p], lane, call.half);
          const Vector power = load(powers[(block - 1) % 2][p] + lane);
          store(call.result + i, load(call.outputGradient + i) * power - factor * load(call.input + i) * around);
        }
      }
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
