// A pixel's block of channels, which is a line of the cache, stored past the caches: for results that would push
// themselves out of them before anybody reads them. Only where lines begin at such places, and endNonTemporal() comes
// last.
#pragma once

#include <cstring>

#include "compute/conv/kernels/kernels.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tacc::conv {

/// As a copy with usual stores where there are no others.
inline void copyPixelNonTemporal(float* to, const float* from) {
#if defined(__x86_64__)
  for (int lane = 0; lane < blockLength; lane += 4) _mm_stream_ps(to + lane, _mm_loadu_ps(from + lane));
#else
  std::memcpy(to, from, blockLength * sizeof(float));
#endif
}

inline void clearPixelNonTemporal(float* to) {
#if defined(__x86_64__)
  for (int lane = 0; lane < blockLength; lane += 4) _mm_stream_ps(to + lane, _mm_setzero_ps());
#else
  std::memset(to, 0, blockLength * sizeof(float));
#endif
}

}  // namespace tacc::conv
