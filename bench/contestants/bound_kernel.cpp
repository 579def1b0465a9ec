#include "contestants/bound_kernel.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc::bench {
namespace {

/// Summed at a time: the sum stays in the first-level cache until it is in all targets.
constexpr size_t tile = 1024;

#if defined(__x86_64__)
#define TACC_BENCH_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define TACC_BENCH_CLONES
#endif

TACC_BENCH_CLONES void sumTile(const float* const* sources, size_t ranks, size_t begin, size_t count, float* sum) {
  const float* first = sources[0] + begin;
  if (ranks == 1) {
    std::copy(first, first + count, sum);
    return;
  }
  const float* second = sources[1] + begin;
  for (size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
  for (size_t r = 2; r < ranks; ++r) {
    const float* source = sources[r] + begin;
    for (size_t i = 0; i < count; ++i) sum[i] += source[i];
  }
}

TACC_BENCH_CLONES void storeTile(const float* sum, float* target, size_t count) {
  for (size_t i = 0; i < count; ++i) target[i] = sum[i];
}

#if defined(__x86_64__)
void streamTile(const float* sum, float* target, size_t count) {
  for (size_t i = 0; i < count; i += 4) _mm_stream_ps(target + i, _mm_load_ps(sum + i));
}

void finishStreaming() { _mm_sfence(); }
#else
void streamTile(const float* sum, float* target, size_t count) { storeTile(sum, target, count); }

void finishStreaming() {}
#endif

}  // namespace

bool hasStreamingStores() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

void reduceAndDistribute(const float* const* sources, float* const* targets, size_t ranks, size_t count,
                         bool streamingStores) {
  alignas(64) float sum[tile];
  for (size_t begin = 0; begin < count; begin += tile) {
    const size_t now = std::min(tile, count - begin);
    sumTile(sources, ranks, begin, now, sum);
    for (size_t r = 0; r < ranks; ++r) {
      if (streamingStores)
        streamTile(sum, targets[r] + begin, now);
      else
        storeTile(sum, targets[r] + begin, now);
    }
  }
  if (streamingStores) finishStreaming();
}

}  // namespace tacc::bench
