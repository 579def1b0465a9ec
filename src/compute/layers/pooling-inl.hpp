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

inline void poolMax(const PoolLine& line, const float* input, float* output) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0) fetchAhead(line, input, x);
          Vector largest = broadcast(-__builtin_inff());
          forEachPixel(
              line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                largest = maximum(load(input + pixel + lane), largest);
              });
          store(output + x * blockLength + lane, largest);
        });
  }
}

inline void poolAverage(const PoolLine& line, const float* input, float* output) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Share share(line.lines);
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0) fetchAhead(line, input, x);
          Vector sum{};
          forEachPixel(
              line, from,
              to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) { sum += load(input + pixel + lane); });
          store(output + x * blockLength + lane, sum * share.of(to - from));
        });
  }
}

/// The first pixel that has the largest value gets all of the gradient.
inline void poolMaxGradient(const PoolLine& line, const float* input, const float* output, const float* outputGradient,
                            float* inputGradient) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          if (lane == 0) fetchAhead(line, input, x);
          const Vector largest = load(output + x * blockLength + lane);
          Vector left = load(outputGradient + x * blockLength + lane);
          forEachPixel(
              line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                const auto isLargest = load(input + pixel + lane) == largest;
                float* const at = inputGradient + pixel + lane;
                store(at, load(at) + (isLargest ? left : Vector{}));
                left = isLargest ? Vector{} : left;
              });
        });
  }
}

inline void poolAverageGradient(const PoolLine& line, const float* outputGradient, float* inputGradient) {
  for (int lane = 0; lane < blockLength; lane += TACC_LANES) {
    Share share(line.lines);
    forEachWindow(
        line, [&](int x, int from, int to) __attribute__((always_inline)) {
          const Vector part = load(outputGradient + x * blockLength + lane) * share.of(to - from);
          forEachPixel(
              line, from, to, [&](std::ptrdiff_t pixel) __attribute__((always_inline)) {
                float* const at = inputGradient + pixel + lane;
                store(at, load(at) + part);
              });
        });
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers
