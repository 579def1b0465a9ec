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

__attribute__((target("avx512f"))) void moveAvx512(std::span<float* const> streams, size_t count) {
  const __m512 one = _mm512_set1_ps(1);
  const __m512 share = _mm512_set1_ps(1.0f / static_cast<float>(streams.size()));
  for (size_t i = 0; i < count; i += 16) {
    __m512 sum = _mm512_setzero_ps();
    for (float* const stream : streams) {
      const __m512 value = _mm512_load_ps(stream + i);
      sum = _mm512_add_ps(sum, value);
      _mm512_store_ps(stream + i, _mm512_sub_ps(one, value));
    }
    _mm512_store_ps(streams[0] + i, _mm512_mul_ps(share, sum));
  }
}

__attribute__((target("avx2"))) void moveAvx2(std::span<float* const> streams, size_t count) {
  const __m256 one = _mm256_set1_ps(1);
  const __m256 share = _mm256_set1_ps(1.0f / static_cast<float>(streams.size()));
  for (size_t i = 0; i < count; i += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (float* const stream : streams) {
      const __m256 value = _mm256_load_ps(stream + i);
      sum = _mm256_add_ps(sum, value);
      _mm256_store_ps(stream + i, _mm256_sub_ps(one, value));
    }
    _mm256_store_ps(streams[0] + i, _mm256_mul_ps(share, sum));
  }
}
#endif

void movePlain(std::span<float* const> streams, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (float* const stream : streams) {
      sum += stream[i];
      stream[i] = 1 - stream[i];
    }
    streams[0][i] = sum / static_cast<float>(streams.size());
  }
}

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

void moveTogether(std::span<float* const> streams, size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return moveAvx512(streams, count);
  if (__builtin_cpu_supports("avx2")) return moveAvx2(streams, count);
#endif
  movePlain(streams, count);
}

}  // namespace tacc::bench
