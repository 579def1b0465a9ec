#include "contestants/bound_kernel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc::bench {
namespace {

// The widest stores there are: a streaming store of part of a line can cost half the bandwidth.

void distributePlain(const float* const* sources, float* const* targets, size_t ranks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float sum = sources[0][i];
    for (size_t r = 1; r < ranks; ++r) sum += sources[r][i];
    for (size_t r = 0; r < ranks; ++r) targets[r][i] = sum;
  }
}

#if defined(__x86_64__)
template <bool streaming>
__attribute__((target("avx512f"))) void distributeAvx512(const float* const* sources, float* const* targets,
                                                         size_t ranks, size_t count) {
  for (size_t i = 0; i < count; i += 16) {
    __m512 sum = _mm512_load_ps(sources[0] + i);
    for (size_t r = 1; r < ranks; ++r) sum = _mm512_add_ps(sum, _mm512_load_ps(sources[r] + i));
    for (size_t r = 0; r < ranks; ++r) {
      if constexpr (streaming)
        _mm512_stream_ps(targets[r] + i, sum);
      else
        _mm512_store_ps(targets[r] + i, sum);
    }
  }
  _mm_sfence();
}

template <bool streaming>
__attribute__((target("avx2"))) void distributeAvx2(const float* const* sources, float* const* targets, size_t ranks,
                                                    size_t count) {
  for (size_t i = 0; i < count; i += 8) {
    __m256 sum = _mm256_load_ps(sources[0] + i);
    for (size_t r = 1; r < ranks; ++r) sum = _mm256_add_ps(sum, _mm256_load_ps(sources[r] + i));
    for (size_t r = 0; r < ranks; ++r) {
      if constexpr (streaming)
        _mm256_stream_ps(targets[r] + i, sum);
      else
        _mm256_store_ps(targets[r] + i, sum);
    }
  }
  _mm_sfence();
}
#endif

}  // namespace

bool hasStreamingStores() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

void reduceAndDistribute(const float* const* sources, float* const* targets, size_t ranks, size_t count,
                         bool streamingStores) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return streamingStores ? distributeAvx512<true>(sources, targets, ranks, count)
                           : distributeAvx512<false>(sources, targets, ranks, count);
  }
  if (__builtin_cpu_supports("avx2")) {
    return streamingStores ? distributeAvx2<true>(sources, targets, ranks, count)
                           : distributeAvx2<false>(sources, targets, ranks, count);
  }
#else
  static_cast<void>(streamingStores);
#endif
  distributePlain(sources, targets, ranks, count);
}

}  // namespace tacc::bench
