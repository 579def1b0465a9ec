#include "compute/conv/kernels/short_sums_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const ShortSumsKernels& shortSumsKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##ShortSums();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableShortSums();
}

}  // namespace tacc::conv
