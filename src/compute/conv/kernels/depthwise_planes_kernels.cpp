#include "compute/conv/kernels/depthwise_planes_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const DepthwisePlaneKernels& depthwisePlaneKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##DepthwisePlaneKernels();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableDepthwisePlaneKernels();
}

}  // namespace tacc::conv
