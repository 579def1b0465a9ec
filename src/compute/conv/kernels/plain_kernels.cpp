#include "compute/conv/kernels/plain_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const PlainKernels& plainKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##PlainKernels();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portablePlainKernels();
}

}  // namespace tacc::conv
