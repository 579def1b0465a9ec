// What AMX's tiles do, in plain loops: so that every CPU can prove the plans that are made for them.
#pragma once

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv::test {

/// The portable kernels, and tiles of float32 and of bfloat16.
const KernelSet& plainTileKernels();

}  // namespace tacc::conv::test
