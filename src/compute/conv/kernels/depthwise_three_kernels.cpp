#include "compute/conv/kernels/depthwise_three_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const DepthwiseThreeKernels& depthwiseThreeKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##DepthwiseThree();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableDepthwiseThree();
}

}  // namespace tacc::conv
