#include "compute/conv/kernels/planes_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const PlaneKernels& planeKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##PlaneKernels();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portablePlaneKernels();
}

}  // namespace tacc::conv
