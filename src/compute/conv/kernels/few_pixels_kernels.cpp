#include "compute/conv/kernels/few_pixels_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const FewPixelsKernels& fewPixelsKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##FewPixels();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableFewPixels();
}

}  // namespace tacc::conv
