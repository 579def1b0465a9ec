// Dropout: numbers become zero by a chance that follows from the seed, the step and their place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/conv/task_executor.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::layers {

/// `rate` is from 0 to below 1.
void dropout(const float* input, float* output, std::size_t count, float rate, std::uint64_t seed, std::uint64_t step,
             const LayerKernels& kernels, const conv::TaskExecutor& executor);

}  // namespace tacc::layers
