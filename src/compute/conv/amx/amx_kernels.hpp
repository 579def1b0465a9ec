// The kernels that are compiled for AMX. To be called where amxKernels() is not null.
#pragma once

#include "compute/conv/amx/bf16x3.hpp"

namespace tacc::conv {

const Bf16x3Kernels& amxKernelTable();

}  // namespace tacc::conv
