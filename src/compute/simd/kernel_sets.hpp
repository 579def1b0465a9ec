// Which kernels of convolutions and layers this kind of CPU has: NAMEKernels() of kernels_NAME.cpp in compute/conv,
// NAMETable() of kernels_NAME.cpp in compute/layers.
#pragma once

// clang-format off
/// each(NAME, IS_THERE) for all of them; IS_THERE: whether this CPU can run them.
#if defined(__x86_64__)
#define TACC_KERNEL_SETS(each) \
  each(avx512, __builtin_cpu_supports("avx512f") != 0) \
  each(avx2, __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) \
  each(portable, true)
#else
#define TACC_KERNEL_SETS(each) \
  each(portable, true)
#endif
// clang-format on
