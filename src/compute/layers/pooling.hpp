// Pooling of activations in taccLayoutNchw16c.
#pragma once

#include <cstddef>

#include "compute/conv/task_executor.hpp"
#include "compute/layers/kernels.hpp"
#include "tacc/compute.h"

namespace tacc::layers {

/// A checked description with its output's size.
struct Pooling {
  taccPoolDesc_t desc;
  int blocks;  // of channels, of all images
  int outHeight, outWidth;
};

/// Throws Error (taccInvalidArgument).
Pooling understand(const taccPoolDesc_t& desc);

void poolForward(const Pooling& pooling, const float* input, float* output, const LayerKernels& kernels,
                 const conv::TaskExecutor& executor);
void poolBackward(const Pooling& pooling, const float* input, const float* output, const float* outputGradient,
                  float* inputGradient, const LayerKernels& kernels, const conv::TaskExecutor& executor);

}  // namespace tacc::layers
