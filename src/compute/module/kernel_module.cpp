// Compiled into libtacc_kernels.so alone.
#include "compute/module/kernel_module.hpp"

extern "C" {
[[gnu::visibility("default")]] extern const tacc::KernelModule taccKernelModule;  // kernelModuleSymbol

const tacc::KernelModule taccKernelModule = {tacc::kernelLayout(),
#define TACC_MEMBER(set, isThere)                                                                     \
  &tacc::conv::set##Kernels, &tacc::conv::set##PlaneKernels, &tacc::conv::set##DepthwisePlaneKernels, \
      &tacc::conv::set##PlainKernels, &tacc::conv::set##ShortSums, &tacc::conv::set##DepthwiseNhwc,   \
      &tacc::conv::set##JoinedLines, &tacc::conv::set##DepthwiseThree, &tacc::conv::set##FewPixels,   \
      &tacc::layers::set##Table,
                                             TACC_KERNEL_SETS(TACC_MEMBER)
#undef TACC_MEMBER
#if defined(__x86_64__)
                                                 & tacc::conv::amxKernelTable,
                                             &tacc::conv::avx512PairKernels, &tacc::conv::avx512Bf16Depthwise
#endif
};
}
