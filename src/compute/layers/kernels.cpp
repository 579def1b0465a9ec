#include "compute/layers/kernels.hpp"

#include "core/error.hpp"

namespace tacc::layers {

const LayerKernels& kernelTable(std::string_view vectors) {
#define TACC_FIND(set, isThere) \
  if ((isThere) && set##Table().isa == vectors) return set##Table();
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  fail(taccInternalError, "no kernels of layers are for vectors of \"{}\"", vectors);
}

}  // namespace tacc::layers
