// What the C functions of tacc/compute.h check alike.
#pragma once

#include <cstddef>
#include <limits>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::compute_check {

/// The kernels of this process, chosen at the first call. Throws when TACC_ISA does not fit this CPU.
const conv::KernelSet& kernels();
/// The same for a plan of float32 that is made now: see compute/conv/amx/tile_pace.hpp.
const conv::KernelSet& kernelsForFloats();
/// Those of the other layers, for the same instruction set.
const layers::LayerKernels& layerKernels();

/// For checkExecutor(): as many as there are.
inline constexpr int anyWorkers = std::numeric_limits<int>::max();

// Each throws Error (taccInvalidArgument) that names what is wrong.
void require(const void* pointer, const char* name);
void requireAligned(const void* pointer, const char* name);
void checkWorkspace(const void* workspace, std::size_t bytes, std::size_t needed);
void checkExecutor(const taccExecutor_t* executor, int maxWorkers);

}  // namespace tacc::compute_check
