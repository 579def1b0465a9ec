// Pooling of one line of outputs. Included by one file per instruction set, as table-inl.hpp.
#include "compute/layers/pooling_three-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

/// A window of kSize lines and columns that is wholly inside the image; 0: of any size.
template <int kSize>
struct WindowSize {};

/// Calls visit(x, first column, end column, size) for the outputs of a line; columns are those inside the image.
template <int kSize, class Visit>
[[gnu::always_inline]] inline void forEachWindowOf(const PoolLine& line, const Visit& visit) {
  const auto visitAny = [&](int x) __attribute__((always_inline)) {
    const int left = x * line.stride - line.pad;
    visit(x, left < 0 ? 0 : left, line.width - left < line.kernel ? line.width : left + line.kernel, WindowSize<0>{});
  };
  int x = 0;
  if constexpr (kSize != 0) {
    const WholeWindows whole(line);
    for (; x < whole.from; ++x) visitAny(x);
    for (; x < whole.to; ++x) {
      const int left = x * line.stride - line.pad;
      visit(x, left, left + kSize, WindowSize<kSize>{});
    }
  }
  for (; x < line.outputs; ++x) visitAny(x);
}

template <class Visit>
[[gnu::always_inline]] inline void forEachWindow(const PoolLine& line, const Visit& visit) {
  if (line.kernel == 2 && line.lines == 2) {
    forEachWindowOf<2>(line, visit);
  } else if (line.kernel == 3 && line.lines == 3) {
    forEachWindowOf<3>(line, visit);
  } else {
    forEachWindowOf<0>(line, visit);
  }
}

/// Calls visit(offset of the input pixel) for the pixels of a window, line by line.
template <int kSize, class Visit>
[[gnu::always_inline]] inline void forEachPixel(const PoolLine& line, int from, int to, WindowSize<kSize>,
                                                const Visit& visit) {
  const int lines = kSize != 0 ? kSize : line.lines;
  const int columns = kSize != 0 ? kSize : to - from;
#pragma GCC unroll 3
  for (int y = 0; y < lines; ++y) {
    const std::ptrdiff_t first = y * line.inputLine + from * std::ptrdiff_t{blockLength};
#pragma GCC unroll 3
    for (int x = 0; x < columns; ++x) visit(first + x * std::ptrdiff_t{blockLength});
  }
}

/// One divided by how many pixels a window has: windows of one line often have as many.
class Share {
 public:
  explicit Share(int lines) : lines_(lines) {}
  [[gnu::always_inline]] float of(int columns) {
    if (columns != columns_) {
      columns_ = columns;
      share_ = 1.0F / static_cast<float>(lines_ * columns);
    }
    return share_;
  }

 private:
  int lines_, columns_ = 0;
  float share_ = 0;
};

template <bool kIsOnePlane>
[[gnu::always_inline]] inline void poolMaxOf(const PoolLine& line, const float* input, float* output) {
  const bool isNonTemporal = streams(line, output);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    if (kIsOnePlane && line.kernel == 3 && line.stride <= 2) {
      const auto same = [](Vector largest, int) __attribute__((always_inline)) { return largest; };
      if (line.stride == 1) {
        slide<Largest, 1>(line, input, output, lane, isNonTemporal, same);
      } else {
        slide<Largest, 2>(line, input, output, lane, isNonTemporal, same);
      }
      continue;
    }
    forEachWindow(
        line, [&](int x, int from, int to, auto size) __attribute__((always_inline)) {
          if (lane == 0 && kIsOnePlane) fetchAhead(line, input, x);
          const float* image = input + lane;
          float* result = output + x * blockLength + lane;
          for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
            Vector largest = broadcast(-__builtin_inff());
            forEachPixel(
                line, from, to, size, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                  largest = maximum(load(image + pixel), largest);
                });
            put(result, largest, isNonTemporal);
            image += line.inputPlane;
            result += line.outputPlane;
          }
        });
  }
  if (isNonTemporal && line.isLast) endNonTemporal();
}

inline void poolMax(const PoolLine& line, const float* input, float* output) {
  if (line.planes == 1) {
    poolMaxOf<true>(line, input, output);
  } else {
    poolMaxOf<false>(line, input, output);
  }
}

template <bool kIsOnePlane>
[[gnu::always_inline]] inline void poolAverageOf(const PoolLine& line, const float* input, float* output) {
  const bool isNonTemporal = streams(line, output);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Share share(line.lines);
    const float share3 = share.of(3);
    if (line.kernel == 3 && line.stride == 1) {
      for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
        slide<Sum, 1>(
            line, input + plane * line.inputPlane, output + plane * line.outputPlane, lane,
            isNonTemporal, [&](Vector sum, int columns) __attribute__((always_inline)) {
              return sum * (columns == 3 ? share3 : share.of(columns));
            });
      }
      continue;
    }
    forEachWindow(
        line, [&](int x, int from, int to, auto size) __attribute__((always_inline)) {
          if (lane == 0 && kIsOnePlane) fetchAhead(line, input, x);
          const float* image = input + lane;
          float* result = output + x * blockLength + lane;
          for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
            Vector sum{};
            forEachPixel(
                line, from, to,
                size, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) { sum += load(image + pixel); });
            put(result, sum * share.of(to - from), isNonTemporal);
            image += line.inputPlane;
            result += line.outputPlane;
          }
        });
  }
  if (isNonTemporal && line.isLast) endNonTemporal();
}

inline void poolAverage(const PoolLine& line, const float* input, float* output) {
  if (line.planes == 1) {
    poolAverageOf<true>(line, input, output);
  } else {
    poolAverageOf<false>(line, input, output);
  }
}

/// What a window gives to one of its pixels.
template <bool kIsTiling>
[[gnu::always_inline]] inline void give(float* to, Vector gradient, bool isNonTemporal) {
  if (kIsTiling) {
    put(to, gradient, isNonTemporal);
  } else {
    store(to, load(to) + gradient);
  }
}

template <bool kIsTiling>
[[gnu::always_inline]] inline void spreadMax(const PoolLine& line, const float* input, const float* output,
                                             const float* outputGradient, float* inputGradient) {
  const bool isNonTemporal = streams(line, inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    forEachWindow(
        line, [&](int x, int from, int to, auto size) __attribute__((always_inline)) {
          if (lane == 0) fetchAhead(line, input, x);
          const Vector largest = load(output + x * blockLength + lane);
          Vector left = load(outputGradient + x * blockLength + lane);
          forEachPixel(
              line, from, to, size, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                const auto isLargest = load(input + pixel + lane) == largest;
                give<kIsTiling>(inputGradient + pixel + lane, isLargest ? left : Vector{}, isNonTemporal);
                left = isLargest ? Vector{} : left;
              });
        });
  }
  if (kIsTiling && isNonTemporal && line.isLast) endNonTemporal();
}

/// The first pixel that has the largest value gets all of the gradient.
inline void poolMaxGradient(const PoolLine& line, const float* input, const float* output, const float* outputGradient,
                            float* inputGradient) {
  if (line.isTiling) {
    spreadMax<true>(line, input, output, outputGradient, inputGradient);
  } else {
    spreadMax<false>(line, input, output, outputGradient, inputGradient);
  }
}

template <bool kIsTiling>
[[gnu::always_inline]] inline void spreadAverage(const PoolLine& line, const float* outputGradient,
                                                 float* inputGradient) {
  const bool isNonTemporal = streams(line, inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Share share(line.lines);
    forEachWindow(
        line, [&](int x, int from, int to, auto size) __attribute__((always_inline)) {
          const Vector part = load(outputGradient + x * blockLength + lane) * share.of(to - from);
          forEachPixel(
              line, from, to, size, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                give<kIsTiling>(inputGradient + pixel + lane, part, isNonTemporal);
              });
        });
  }
  if (kIsTiling && isNonTemporal && line.isLast) endNonTemporal();
}

inline void poolAverageGradient(const PoolLine& line, const float* outputGradient, float* inputGradient) {
  if (line.isTiling) {
    spreadAverage<true>(line, outputGradient, inputGradient);
  } else {
    spreadAverage<false>(line, outputGradient, inputGradient);
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
