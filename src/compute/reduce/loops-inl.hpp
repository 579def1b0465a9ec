// Reductions as plain loops, which the compiler makes vectors of for each instruction set: those whose elements do not
// go through the kernels of reduce-inl.hpp, or that need none of their care for streams and registers.
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "compute/reduce/reduce.hpp"

#if defined(TACC_COMPUTE_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_LOOPS_INL
#undef TACC_COMPUTE_LOOPS_INL
#else
#define TACC_COMPUTE_LOOPS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {

/// Bytes of accumulators between two sources: they stay in the L1 cache.
inline constexpr std::size_t loopTileBytes = 8192;

/// `Op::apply(accumulated, next, count)` for piece after piece of the vectors, source after source. A destination may
/// be a source: of a piece all sources are read before anything is written.
template <class T, class Op>
void reduceByLoops(const ReduceJob& job) {
  constexpr std::size_t tileLength = loopTileBytes / sizeof(T);
  alignas(64) T tile[tileLength];
  for (std::size_t begin = 0; begin < job.count; begin += tileLength) {
    const std::size_t count = std::min(tileLength, job.count - begin);
    std::memcpy(static_cast<void*>(tile), static_cast<const T*>(job.sources[0]) + begin, count * sizeof(T));
    for (int s = 1; s < job.sourceCount; ++s) Op::apply(tile, static_cast<const T*>(job.sources[s]) + begin, count);
    for (int d = 0; d < job.destinationCount; ++d)
      std::memcpy(static_cast<void*>(static_cast<T*>(job.destinations[d]) + begin), tile, count * sizeof(T));
  }
}

struct BitAnd {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] & b[i]);
  }
};
struct BitOr {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] | b[i]);
  }
};
struct BitXor {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>(a[i] ^ b[i]);
  }
};

struct LogicalAnd {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>((a[i] != 0) & (b[i] != 0));
  }
};
struct LogicalOr {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>((a[i] | b[i]) != 0);
  }
};
struct LogicalXor {
  template <class T>
  static void apply(T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<T>((a[i] != 0) != (b[i] != 0));
  }
};

template <class T>
struct Complex {
  T real, imaginary;
};
/// Products and sums are rounded one by one on every instruction set: the file is compiled without contractions, and
/// the products go through memory, as GCC 12 makes one operation of products, a sum and a difference side by side even
/// so.
struct ComplexProduct {
  template <class T>
  static void apply(Complex<T>* HWY_RESTRICT a, const Complex<T>* HWY_RESTRICT b, std::size_t count) {
    constexpr std::size_t most = 128;
    alignas(64) T first[2 * most], second[2 * most];
    for (std::size_t begin = 0; begin < count; begin += most) {
      const std::size_t length = std::min(most, count - begin);
      Complex<T>* HWY_RESTRICT const x = a + begin;
      const Complex<T>* HWY_RESTRICT const y = b + begin;
      for (std::size_t i = 0; i < length; ++i) {
        first[2 * i] = x[i].real * y[i].real;
        first[2 * i + 1] = x[i].real * y[i].imaginary;
        second[2 * i] = x[i].imaginary * y[i].imaginary;
        second[2 * i + 1] = x[i].imaginary * y[i].real;
      }
      for (std::size_t i = 0; i < length; ++i) {
        x[i].real = first[2 * i] - second[2 * i];
        x[i].imaginary = first[2 * i + 1] + second[2 * i + 1];
      }
    }
  }
};

template <class T>
struct Located {
  T value;
  std::int32_t index;
};
/// The pair whose value `Before` puts first. NaN is neither less nor greater: what came first stays.
template <class Before>
struct FirstLocated {
  template <class T>
  static void apply(Located<T>* HWY_RESTRICT a, const Located<T>* HWY_RESTRICT b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const T x = a[i].value, y = b[i].value;
      const std::int32_t m = a[i].index, n = b[i].index;
      const bool isBefore = Before()(y, x);
      a[i].value = isBefore ? y : x;
      a[i].index = isBefore ? n : (y == x && n < m ? n : m);
    }
  }
};
using LeastLocated = FirstLocated<std::less<>>;
using GreatestLocated = FirstLocated<std::greater<>>;

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif
