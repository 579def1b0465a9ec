// Pooling of one line of outputs. Included by one file per instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

/// Calls visit(x, first column, end column) for the outputs of a line; columns are those inside the image.
template <class Visit>
[[gnu::always_inline]] inline void forEachWindow(const PoolLine& line, const Visit& visit) {
  for (int x = 0; x < line.outputs; ++x) {
    const int left = x * line.stride - line.pad;
    visit(x, left < 0 ? 0 : left, line.width - left < line.kernel ? line.width : left + line.kernel);
  }
}

/// Calls visit(offset of the input pixel) for the pixels of a window, line by line.
template <class Visit>
[[gnu::always_inline]] inline void forEachPixel(const PoolLine& line, int from, int to, const Visit& visit) {
  for (int y = 0; y < line.lines; ++y) {
    const std::ptrdiff_t first = y * line.inputLine + from * std::ptrdiff_t{blockLength};
    if (to - from == 3) {  // the usual window
      visit(first);
      visit(first + blockLength);
      visit(first + 2 * blockLength);
      continue;
    }
    for (int x = 0; x < to - from; ++x) visit(first + x * blockLength);
  }
}

/// Brings what the next line of outputs reads into the second cache, a part with each output.
[[gnu::always_inline]] inline void fetchAhead(const PoolLine& line, const float* input, int x) {
  for (int y = 0; y < line.linesAhead; ++y) {
    const float* const from = input + line.ahead + y * line.inputLine + x * line.stride * std::ptrdiff_t{blockLength};
    for (int i = 0; i < line.stride; ++i) __builtin_prefetch(from + i * blockLength, 0, 2);
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

/// Whether the kernel streams. Narrower vectors write lines of the cache in parts, at different times.
[[gnu::always_inline]] inline bool streams(const PoolLine& line, const float* to) {
  return line.isStreamed && TACC_LANES == blockLength && isAligned(to);
}

template <bool kIsOnePlane>
[[gnu::always_inline]] inline void poolMaxOf(const PoolLine& line, const float* input, float* output) {
  const bool isStreamed = streams(line, output);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0 && kIsOnePlane) fetchAhead(line, input, x);
          const float* image = input + lane;
          float* result = output + x * blockLength + lane;
          for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
            Vector largest = broadcast(-__builtin_inff());
            forEachPixel(
                line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                  largest = maximum(load(image + pixel), largest);
                });
            put(result, largest, isStreamed);
            image += line.inputPlane;
            result += line.outputPlane;
          }
        });
  }
  if (isStreamed && line.isLast) endStreams();
}

inline void poolMax(const PoolLine& line, const float* input, float* output) {
  if (line.planes == 1) {
    poolMaxOf<true>(line, input, output);
  } else {
    poolMaxOf<false>(line, input, output);
  }
}

/// Windows of three columns that are one apart: each column is summed once.
[[gnu::always_inline]] inline void slideAverage(const PoolLine& line, const float* input, float* output, int lane,
                                                bool isStreamed) {
  const auto columnAt = [&](int x) __attribute__((always_inline)) {
    if (x < 0 || x >= line.width) return Vector{};
    const float* const from = input + x * std::ptrdiff_t{blockLength} + lane;
    Vector sum = load(from);
    if (line.lines == 3) return sum + load(from + line.inputLine) + load(from + 2 * line.inputLine);
    for (int y = 1; y < line.lines; ++y) sum += load(from + y * line.inputLine);
    return sum;
  };
  Share share(line.lines);
  Vector first = columnAt(-line.pad);
  Vector second = columnAt(1 - line.pad);
  forEachWindow(
      line, [&](int x, int from, int to) __attribute__((always_inline)) {
        if (lane == 0) fetchAhead(line, input, x);
        const Vector third = columnAt(x - line.pad + 2);
        put(output + x * blockLength + lane, (first + second + third) * share.of(to - from), isStreamed);
        first = second;
        second = third;
      });
}

template <bool kIsOnePlane>
[[gnu::always_inline]] inline void poolAverageOf(const PoolLine& line, const float* input, float* output) {
  const bool isStreamed = streams(line, output);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    if (line.kernel == 3 && line.stride == 1) {
      for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
        slideAverage(line, input + plane * line.inputPlane, output + plane * line.outputPlane, lane, isStreamed);
      }
      continue;
    }
    Share share(line.lines);
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0 && kIsOnePlane) fetchAhead(line, input, x);
          const float* image = input + lane;
          float* result = output + x * blockLength + lane;
          for (int plane = 0; plane < (kIsOnePlane ? 1 : line.planes); ++plane) {
            Vector sum{};
            forEachPixel(
                line, from,
                to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) { sum += load(image + pixel); });
            put(result, sum * share.of(to - from), isStreamed);
            image += line.inputPlane;
            result += line.outputPlane;
          }
        });
  }
  if (isStreamed && line.isLast) endStreams();
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
[[gnu::always_inline]] inline void give(float* to, Vector gradient, bool isStreamed) {
  if (kIsTiling) {
    put(to, gradient, isStreamed);
  } else {
    store(to, load(to) + gradient);
  }
}

template <bool kIsTiling>
[[gnu::always_inline]] inline void spreadMax(const PoolLine& line, const float* input, const float* output,
                                             const float* outputGradient, float* inputGradient) {
  const bool isStreamed = streams(line, inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0) fetchAhead(line, input, x);
          const Vector largest = load(output + x * blockLength + lane);
          Vector left = load(outputGradient + x * blockLength + lane);
          forEachPixel(
              line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                const auto isLargest = load(input + pixel + lane) == largest;
                give<kIsTiling>(inputGradient + pixel + lane, isLargest ? left : Vector{}, isStreamed);
                left = isLargest ? Vector{} : left;
              });
        });
  }
  if (kIsTiling && isStreamed && line.isLast) endStreams();
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
  const bool isStreamed = streams(line, inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Share share(line.lines);
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          const Vector part = load(outputGradient + x * blockLength + lane) * share.of(to - from);
          forEachPixel(
              line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                give<kIsTiling>(inputGradient + pixel + lane, part, isStreamed);
              });
        });
  }
  if (kIsTiling && isStreamed && line.isLast) endStreams();
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
