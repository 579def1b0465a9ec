// The kernels that are compiled for AMX. To be called where amxKernels() is not null.
#pragma once

#include "compute/conv/split.hpp"

namespace tacc::conv {

const SplitKernels& amxKernelTable();

}  // namespace tacc::conv
