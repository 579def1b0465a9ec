// Which instruction sets the kernels are compiled for. Files that are compiled for several include it before all other
// Highway headers.
#pragma once

// Left out: SSSE3 (every CPU that we meet has SSE4 as well) and SVE (its vectors cannot be members of a struct; such
// CPUs run the NEON kernels).
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include <hwy/targets.h>
