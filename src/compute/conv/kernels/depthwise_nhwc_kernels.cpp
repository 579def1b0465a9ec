#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const DepthwiseNhwcKernels& depthwiseNhwcKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##DepthwiseNhwc();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableDepthwiseNhwc();
}

}  // namespace tacc::conv
