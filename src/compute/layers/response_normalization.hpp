// Local response normalisation across channels, of activations in taccLayoutNchw16c.
#pragma once

#include "compute/conv/executor.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::layers {

/// Checks a description. Throws Error (taccInvalidArgument).
void check(const taccLrnDesc_t& desc);

void lrnForward(const taccLrnDesc_t& desc, const float* input, float* output, const KernelTable& kernels,
                const conv::Executor& executor);
void lrnBackward(const taccLrnDesc_t& desc, const float* input, const float* outputGradient, float* inputGradient,
                 const KernelTable& kernels, const conv::Executor& executor);

}  // namespace tacc::layers
