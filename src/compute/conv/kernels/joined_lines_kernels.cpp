#include "compute/conv/kernels/joined_lines_kernels.hpp"

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

const JoinedLinesKernels& joinedLinesKernels(const KernelSet& kernels) {
#define TACC_FIND(set, isThere) \
  if (kernels.vectors == #set) return set##JoinedLines();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return portableJoinedLines();
}

}  // namespace tacc::conv
