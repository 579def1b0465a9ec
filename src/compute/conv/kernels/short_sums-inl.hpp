// The kernel of results that are sums of few values: pixels x vectors of channels in registers. What a tile costs
// beside its products is felt here, so tiles that follow each other along the channels share a call and its input,
// which stays in the L1 cache, and whole pixels are written in the order of memory. Included by one file per
// instruction set, as tile-inl.hpp.
#include <utility>

#include "compute/conv/kernels/activation-inl.hpp"
#include "compute/conv/kernels/short_sums_kernels.hpp"
#include "compute/conv/kernels/sums_in_place-inl.hpp"
#include "compute/conv/kernels/vector-inl.hpp"

namespace tacc::conv {
namespace TACC_CONV_ISA {

/// Most pixels of a tile of that many vectors: what registers hold beside the weights of a value and one value.
constexpr int sumPixels(int vectors) {
  const int pixels = (TACC_REGISTERS - 1 - vectors) / vectors;
  return pixels < mostSumPixels ? pixels : mostSumPixels;
}

/// Where pixels that are any distance apart are. An address may be a register and one, two, four or eight times another
/// one, so five registers do for nine pixels, and one more for those behind them.
struct PixelPlaces {
  static constexpr int near = 9;
  const char *first, *tenth;
  std::ptrdiff_t one, three, five, seven;  // times the distance, in bytes

  [[gnu::always_inline]] PixelPlaces(const float* input, std::ptrdiff_t pixel)
      : first(reinterpret_cast<const char*>(input)),
        tenth(first + near * pixel * static_cast<std::ptrdiff_t>(sizeof(float))),
        one(pixel * static_cast<std::ptrdiff_t>(sizeof(float))),
        three(3 * one),
        five(5 * one),
        seven(7 * one) {}

  /// So that the compiler computes no other multiples before the loop, for which there are no registers, and loads
  /// nothing for the next value before.
  template <int kPixels>
  [[gnu::always_inline]] void keep() {
    asm volatile("" : "+r"(one) : : "memory");
    if constexpr (kPixels > 3) asm volatile("" : "+r"(three));
    if constexpr (kPixels > 5) asm volatile("" : "+r"(five));
    if constexpr (kPixels > 7) asm volatile("" : "+r"(seven));
  }

  [[gnu::always_inline]] const char* at(int pixel) const {
    if (pixel >= near) return tenth + offset(pixel - near);
    return first + offset(pixel);
  }
  [[gnu::always_inline]] void moveOn(int values) {
    first += values * static_cast<std::ptrdiff_t>(sizeof(float));
    tenth += values * static_cast<std::ptrdiff_t>(sizeof(float));
  }

 private:
  [[gnu::always_inline]] std::ptrdiff_t offset(int pixel) const {
    switch (pixel) {
      case 3:
        return three;
      case 5:
        return five;
      case 6:
        return 2 * three;
      case 7:
        return seven;
      default:
        return pixel * one;
    }
  }
};

/// Tiles of few sums, which would wait for themselves, have them twice: for every other value.
constexpr bool hasSumsTwice(int vectors, int pixels) { return vectors * pixels <= 6; }

/// Adds the products of one line of the kernel; moves `weights` behind its rows.
template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void addLine(Vector (&sum)[kPixels][kVectors], Vector (&more)[kPixels][kVectors],
                                           const float* input, std::ptrdiff_t pixel, int values,
                                           const float*& weights) {
  constexpr int kRow = kVectors * TACC_LANES;
  constexpr int kUnrolled = 4;
  PixelPlaces places(input, pixel);
  const auto addValue = [&](int value, auto& to) __attribute__((always_inline)) {
    places.keep<kPixels>();
    Vector w[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) w[v] = load(weights + value * kRow + v * TACC_LANES);
#pragma GCC unroll 14
    for (int p = 0; p < kPixels; ++p) {
      const Vector x = broadcast(reinterpret_cast<const float*>(places.at(p))[value]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) addProductInPlace(to[p][v], w[v], x);
    }
  };
  int left = values;
  for (; left >= kUnrolled; left -= kUnrolled) {
#pragma GCC unroll 4
    for (int value = 0; value < kUnrolled; ++value)
      addValue(value, hasSumsTwice(kVectors, kPixels) && value % 2 == 1 ? more : sum);
    places.moveOn(kUnrolled);
    weights += kUnrolled * kRow;
  }
  for (; left > 0; --left) {
    addValue(0, sum);
    places.moveOn(1);
    weights += kRow;
  }
}

/// What begins a tile may be as large as the products, where these are few: lines of the cache that are written are
/// asked for before.
template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void fetchOutput(const float* output, std::ptrdiff_t pixel) {
  constexpr int kLine = 64 / int{sizeof(float)};
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int at = 0; at < kVectors * TACC_LANES; at += kLine) __builtin_prefetch(output + p * pixel + at);
  }
}

/// What so many pixels of a line of the kernel read. Strips read a value of all their pixels at a time, over which
/// hardware looks ahead late.
template <int kPixels>
[[gnu::always_inline]] inline void fetchInput(const float* input, std::ptrdiff_t pixel, int values) {
  constexpr int kLine = 64 / int{sizeof(float)};
  const auto fetch = [](const float* from, std::ptrdiff_t floats) __attribute__((always_inline)) {
    for (std::ptrdiff_t at = 0; at < floats; at += kLine) __builtin_prefetch(from + at);
  };
  if (pixel <= values + kLine) {  // side by side
    fetch(input, (kPixels - 1) * pixel + values);
    return;
  }
  for (int p = 0; p < kPixels; ++p) fetch(input + p * pixel, values);
}

/// Calls visit(pixel, vector, its place) for all sums, pixel by pixel from `first` on. One place moves on: or else
/// those of all sums are computed before the products, and spilled.
template <int kVectors, int kPixels, class Place, class Visit>
[[gnu::always_inline]] inline void forEachSum(Place* first, std::ptrdiff_t pixel, const Visit& visit) {
  Place* place = first;
  asm("" : "+r"(place), "+r"(pixel));
#pragma GCC unroll 14
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) visit(p, v, place + v * TACC_LANES);
    place += pixel;
    asm("" : "+r"(place));
  }
}

template <int kVectors, int kPixels>
[[gnu::always_inline]] inline void writeSums(const ShortSumsCall& call, Vector (&sum)[kPixels][kVectors],
                                             std::ptrdiff_t at) {
  int lanes = call.lastLanes;
  asm volatile("" : "+r"(lanes));  // or else the mask is computed before the products
  if (call.addend != nullptr) {
    if (lanes == 0) {
      forEachSum<kVectors, kPixels>(
          call.addend + at, call.outputPixel, [&](int p, int v, const float* from) __attribute__((always_inline)) {
            sum[p][v] += load(from);
          });
    } else {
      const PartOfVector part(lanes);
      forEachSum<kVectors, kPixels>(
          call.addend + at, call.outputPixel, [&](int p, int v, const float* from) __attribute__((always_inline)) {
            sum[p][v] += v == kVectors - 1 ? part.load(from) : load(from);
          });
    }
  }
  activate<kPixels * kVectors>(
      call.activation, [&](int i) __attribute__((always_inline))->Vector & { return sum[i / kVectors][i % kVectors]; });
  float* const output = call.output + at;
  if (lanes != 0) {
    const PartOfVector part(lanes);
    forEachSum<kVectors, kPixels>(
        output, call.outputPixel, [&](int p, int v, float* to) __attribute__((always_inline)) {
          if (v == kVectors - 1) {
            part.store(to, sum[p][v]);
          } else {
            store(to, sum[p][v]);
          }
        });
  } else if (call.isNonTemporal) {
    forEachSum<kVectors, kPixels>(
        output,
        call.outputPixel, [&](int p, int v, float* to) __attribute__((always_inline)) { stream(to, sum[p][v]); });
  } else {
    forEachSum<kVectors, kPixels>(
        output,
        call.outputPixel, [&](int p, int v, float* to) __attribute__((always_inline)) { store(to, sum[p][v]); });
  }
}

template <int kVectors, int kPixels>
void shortSums(const ShortSumsCall& given) {
  const ShortSumsCall call = given;  // what could change with a store would be read again behind it
  const std::ptrdiff_t stripInput = kPixels * call.inputPixel, stripOutput = kPixels * call.outputPixel;
  for (int strip = 0; strip < call.strips; ++strip) {
    const float* weights = call.weights;
    for (int line = 0; call.fetchesInput && line < call.lines; ++line) {
      fetchInput<kPixels>(call.input + (strip + 1) * stripInput + line * call.inputLine, call.inputPixel, call.values);
    }
    for (int t = 0; t < call.tiles; ++t) {
      const std::ptrdiff_t lane = std::ptrdiff_t{t} * kVectors * TACC_LANES;
      const std::ptrdiff_t at = strip * stripOutput + lane;
      if (call.outputAhead != 0) fetchOutput<kVectors, kPixels>(call.output + at + call.outputAhead, call.outputPixel);
      Vector sum[kPixels][kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Vector start = call.bias != nullptr ? load(call.bias + lane + v * TACC_LANES) : Vector{};
#pragma GCC unroll 14
        for (int p = 0; p < kPixels; ++p) sum[p][v] = start;
      }
      Vector more[kPixels][kVectors] = {};
      const float* input = call.input + strip * stripInput;
      const float* row = weights;
      for (int line = 0; line < call.lines; ++line, input += call.inputLine) {
        addLine<kVectors, kPixels>(sum, more, input, call.inputPixel, call.values, row);
      }
      if constexpr (hasSumsTwice(kVectors, kPixels)) {
#pragma GCC unroll 6
        for (int i = 0; i < kPixels * kVectors; ++i)
          sum[i / kVectors][i % kVectors] += more[i / kVectors][i % kVectors];
      }
      writeSums<kVectors, kPixels>(call, sum, at);
      weights += call.weightsTile;
    }
  }
}

template <int kVectors, int... kIndex>
constexpr void addShortSums(ShortSumsKernels& kernels, std::integer_sequence<int, kIndex...>) {
  kernels.pixels[kVectors] = static_cast<int>(sizeof...(kIndex));
  ((kernels.sums[kVectors][kIndex + 1] = shortSums<kVectors, kIndex + 1>), ...);
}

constexpr ShortSumsKernels makeShortSums() {
  ShortSumsKernels kernels{};
  kernels.lanes = TACC_LANES;
  addShortSums<1>(kernels, std::make_integer_sequence<int, sumPixels(1)>());
  addShortSums<2>(kernels, std::make_integer_sequence<int, sumPixels(2)>());
  addShortSums<3>(kernels, std::make_integer_sequence<int, sumPixels(3)>());
  addShortSums<4>(kernels, std::make_integer_sequence<int, sumPixels(4)>());
  return kernels;
}

}  // namespace TACC_CONV_ISA

const ShortSumsKernels& TACC_SHORT_SUMS() {
  static constexpr ShortSumsKernels kernels = TACC_CONV_ISA::makeShortSums();
  return kernels;
}

}  // namespace tacc::conv
