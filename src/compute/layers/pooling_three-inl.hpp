// Pooling by windows of three columns, which is nearly all that networks have beside windows that do not overlap. What
// neighbouring windows share stays in registers from one to the next. Included by one file per instruction set, as
// table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

/// Brings what the next line of outputs reads into the L2 cache, a part with each output.
[[gnu::always_inline]] inline void fetchAhead(const PoolLine& line, const float* input, int x) {
  for (int y = 0; y < line.linesAhead; ++y) {
    const float* const from = input + line.ahead + y * line.inputLine + x * line.stride * std::ptrdiff_t{blockLength};
    for (int i = 0; i < line.stride; ++i) __builtin_prefetch(from + i * blockLength, 0, 2);
  }
}

/// The same for windows kStride columns apart, with everything that it needs in registers.
template <int kStride>
class NextLines {
 public:
  NextLines(const PoolLine& line, const float* input)
      : from_(input + line.ahead), step_(line.inputLine), lines_(line.linesAhead) {}
  [[gnu::always_inline]] void fetch(int x) const {
#pragma GCC unroll 2
    for (int y = 0; y < kStride; ++y) {
      if (y >= lines_) break;
#pragma GCC unroll 2
      for (int i = 0; i < kStride; ++i) {
        __builtin_prefetch(from_ + y * step_ + (std::ptrdiff_t{x} * kStride + i) * blockLength, 0, 2);
      }
    }
  }

 private:
  const float* from_;
  std::ptrdiff_t step_;
  int lines_;
};

/// Whether the kernel streams. Narrower vectors write lines of the cache in parts, at different times.
[[gnu::always_inline]] inline bool streams(const PoolLine& line, const float* to) {
  return line.isNonTemporal && TACC_LANES == blockLength && isAligned(to);
}

/// Outputs of a line whose windows have all their columns inside the image.
struct WholeWindows {
  explicit WholeWindows(const PoolLine& line) {
    const int room = line.width + line.pad - line.kernel;
    const int end = room < 0 ? 0 : room / line.stride + 1;
    to = end < line.outputs ? end : line.outputs;
    from = (line.pad + line.stride - 1) / line.stride;
    if (from > to) from = to;
  }
  int from, to;
};

struct Largest {
  [[gnu::always_inline]] static Vector nothing() { return broadcast(-__builtin_inff()); }
  [[gnu::always_inline]] static Vector first(Vector a) { return maximum(a, nothing()); }
  [[gnu::always_inline]] static Vector both(Vector a, Vector b) { return maximum(b, a); }
};
struct Sum {
  [[gnu::always_inline]] static Vector nothing() { return Vector{}; }
  [[gnu::always_inline]] static Vector first(Vector a) { return a; }
  [[gnu::always_inline]] static Vector both(Vector a, Vector b) { return a + b; }
};

/// Windows kStride columns apart, 1 or 2: what a column gives is computed once.
/// finish(result, columns inside the image) makes the output of it.
template <class Of, int kStride, int kLines, class Finish>
[[gnu::always_inline]] inline void slideLines(const PoolLine& line, const float* input, float* output, int lane,
                                              bool isNonTemporal, const Finish& finish) {
  const std::ptrdiff_t step = line.inputLine;
  const auto columnAt = [&](int x) __attribute__((always_inline)) {
    const float* const from = input + x * std::ptrdiff_t{blockLength} + lane;
    Vector value = Of::first(load(from));
    if constexpr (kLines == 3) return Of::both(Of::both(value, load(from + step)), load(from + 2 * step));
    for (int y = 1; y < line.lines; ++y) value = Of::both(value, load(from + y * step));
    return value;
  };
  const auto atRim = [&](int x) __attribute__((always_inline)) {
    return x < 0 || x >= line.width ? Of::nothing() : columnAt(x);
  };
  Vector first = atRim(-line.pad);
  Vector second = kStride == 1 ? atRim(1 - line.pad) : Vector{};
  const auto pool = [&](int x, int columns, const auto& column) __attribute__((always_inline)) {
    const int left = x * kStride - line.pad;
    if (kStride == 2) second = column(left + 1);
    const Vector third = column(left + 2);
    put(output + x * std::ptrdiff_t{blockLength} + lane, finish(Of::both(Of::both(first, second), third), columns),
        isNonTemporal);
    first = kStride == 1 ? second : third;
    second = third;
  };
  const auto poolRim = [&](int x) __attribute__((always_inline)) {
    const int left = x * kStride - line.pad;
    const int from = left < 0 ? 0 : left;
    const int to = line.width - left < 3 ? line.width : left + 3;
    pool(x, to - from, atRim);
  };
  const WholeWindows whole(line);
  for (int x = 0; x < whole.from; ++x) poolRim(x);
  const NextLines<kStride> next(line, input);
  for (int x = whole.from; x < whole.to; ++x) {
    if (lane == 0) next.fetch(x);
    pool(x, 3, columnAt);
  }
  for (int x = whole.to; x < line.outputs; ++x) poolRim(x);
}

template <class Of, int kStride, class Finish>
[[gnu::always_inline]] inline void slide(const PoolLine& line, const float* input, float* output, int lane,
                                         bool isNonTemporal, const Finish& finish) {
  if (line.lines == 3) {
    slideLines<Of, kStride, 3>(line, input, output, lane, isNonTemporal, finish);
  } else {
    slideLines<Of, kStride, 0>(line, input, output, lane, isNonTemporal, finish);
  }
}

/// The gradient of averages over windows of three columns, one apart, with respect to one line of the image. The line
/// of windows is turned round: its image is the gradient of the output, whose lines have the given shares in every
/// column.
inline void poolAverageGradientThree(const PoolLine& line, const float* shares, const float* outputGradient,
                                     float* inputGradient) {
  const bool isNonTemporal = streams(line, inputGradient);
  const float third = 1.0F / 3;
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    const auto columnAt = [&](int x) __attribute__((always_inline)) {
      const float* const from = outputGradient + x * std::ptrdiff_t{blockLength} + lane;
      Vector sum = load(from) * shares[0];
      for (int y = 1; y < line.lines; ++y) sum += load(from + y * line.inputLine) * shares[y];
      return sum;
    };
    const std::ptrdiff_t step = line.inputLine;
    const float share0 = shares[0], share1 = shares[1], share2 = shares[2];
    const auto wholeColumnAt = [=](int x) __attribute__((always_inline)) {
      const float* const from = outputGradient + x * std::ptrdiff_t{blockLength} + lane;
      return load(from) * share0 + load(from + step) * share1 + load(from + 2 * step) * share2;
    };
    const auto atRim = [&](int x) __attribute__((always_inline)) {
      if (x < 0 || x >= line.width) return Vector{};
      const int left = x - (2 - line.pad);
      const int from = left < 0 ? 0 : left;
      const int to = line.outputs - left < 3 ? line.outputs : left + 3;
      return columnAt(x) * (3.0F / static_cast<float>(to - from));
    };
    Vector first = atRim(-line.pad);
    Vector second = atRim(1 - line.pad);
    const auto add = [&](int x, Vector next) __attribute__((always_inline)) {
      put(inputGradient + x * std::ptrdiff_t{blockLength} + lane, (first + second + next) * third, isNonTemporal);
      first = second;
      second = next;
    };
    // Whose last column is of a window that is whole, so that its share is a third.
    const int from = 2 < line.outputs ? 2 : line.outputs;
    const int to = line.lines == 3 && line.outputs - 2 > from ? line.outputs - 2 : from;
    for (int x = 0; x < from; ++x) add(x, atRim(x - line.pad + 2));
    const NextLines<1> next(line, outputGradient);
    for (int x = from; x < to; ++x) {
      if (lane == 0) next.fetch(x);
      add(x, wholeColumnAt(x - line.pad + 2));
    }
    for (int x = to; x < line.outputs; ++x) add(x, atRim(x - line.pad + 2));
  }
  if (isNonTemporal && line.isLast) endNonTemporal();
}

/// The gradient of largest values, windows two apart: a pixel's is written once for each line of windows.
template <int kLines, int kAdded>
[[gnu::always_inline]] inline void spreadMaxThree(const PoolLine& line, const float* input, const float* output,
                                                  const float* outputGradient, float* inputGradient, int lane,
                                                  bool isNonTemporal) {
  const int lines = kLines != 0 ? kLines : line.lines;
  const int added = kLines != 0 ? kAdded : line.added;
  Vector carried[3] = {};
  const auto write = [&](int y, int x, Vector gradient) __attribute__((always_inline)) {
    float* const to = inputGradient + y * line.inputLine + x * std::ptrdiff_t{blockLength} + lane;
    if (y < added) {
      store(to, load(to) + gradient);
    } else {
      put(to, gradient, isNonTemporal && y < line.finished);
    }
  };
  const auto spread = [&](int x, bool isWhole) __attribute__((always_inline)) {
    const int left = 2 * x - line.pad;
    const Vector largest = load(output + x * std::ptrdiff_t{blockLength} + lane);
    Vector rest = load(outputGradient + x * std::ptrdiff_t{blockLength} + lane);
    const auto take = [&](int y, int column) __attribute__((always_inline)) {
      if (!isWhole && (column < 0 || column >= line.width)) return Vector{};
      const auto isLargest = load(input + y * line.inputLine + column * std::ptrdiff_t{blockLength} + lane) == largest;
      const Vector taken = isLargest ? rest : Vector{};
      rest = isLargest ? Vector{} : rest;
      return taken;
    };
#pragma GCC unroll 3
    for (int y = 0; y < 3; ++y) {
      if (y >= lines) break;
      const Vector first = carried[y] + take(y, left);
      const Vector second = take(y, left + 1);
      carried[y] = take(y, left + 2);
      if (isWhole || (left >= 0 && left < line.width)) write(y, left, first);
      if (isWhole || (left + 1 >= 0 && left + 1 < line.width)) write(y, left + 1, second);
    }
  };
  const WholeWindows whole(line);
  for (int x = 0; x < whole.from; ++x) spread(x, false);
  const NextLines<2> next(line, input);
  for (int x = whole.from; x < whole.to; ++x) {
    if (lane == 0) next.fetch(x);
    spread(x, true);
  }
  for (int x = whole.to; x < line.outputs; ++x) spread(x, false);
    // The last window's last column, and those that are in no window.
#pragma GCC unroll 3
  for (int y = 0; y < 3; ++y) {
    if (y >= lines) break;
    for (int x = 2 * line.outputs - line.pad; x < line.width; ++x) {
      write(y, x, carried[y]);
      carried[y] = Vector{};
    }
  }
}

inline void poolMaxGradientThree(const PoolLine& line, const float* input, const float* output,
                                 const float* outputGradient, float* inputGradient) {
  const bool isNonTemporal = streams(line, inputGradient);
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    if (line.lines == 3 && line.added == 1) {
      spreadMaxThree<3, 1>(line, input, output, outputGradient, inputGradient, lane, isNonTemporal);
    } else {
      spreadMaxThree<0, 0>(line, input, output, outputGradient, inputGradient, lane, isNonTemporal);
    }
  }
  if (isNonTemporal && line.isLast) endNonTemporal();
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
