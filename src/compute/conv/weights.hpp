// Weights in either layout, read in blocks of 16 x 16 channels.
#pragma once

#include <cstddef>

#include "compute/conv/shape.hpp"
#include "compute/conv/task_executor.hpp"

namespace tacc::conv {

/// Where the weights of one group, one block of output and one of input channels and one tap are. Weight (k, c) of the
/// block is at base + k * outStep + c * inStep.
struct WeightBlock {
  std::ptrdiff_t base;
  std::ptrdiff_t outStep;
  std::ptrdiff_t inStep;
  int outs;  // channels of the block that there are
  int ins;
};

WeightBlock weightBlock(const Shape& shape, taccWeightLayout_t layout, int group, int outBlock, int inBlock, int r,
                        int s);

/// Looks up the kernels of the transposes, which the first of the calls below does otherwise: it takes memory.
void findTransposes();

/// taccReorderWeights.
void reorderWeights(taccWeightLayout_t fromLayout, const float* from, taccWeightLayout_t toLayout, float* to,
                    const Shape& shape);

/// From blocked to KCRS, but adds to what is there.
void addWeights(const float* blocked, float* kcrs, const Shape& shape);

/// Brings the sums of one block to a gradient, to what is there or in its place: those of an output channel follow each
/// other, and from one to the next there are `row` floats. Of a blocked gradient in its place zeros too, for the output
/// channels that only fill a block.
void deliverBlock(const WeightBlock& block, const float* sums, std::ptrdiff_t row, bool accumulates, float* gradient);

/// Brings sums of 16 channels, tap after tap, to rows of a tap after the other for each channel: to what is there, or
/// in its place.
void deliverRows(const float* sums, float* rows, int taps, bool accumulates);

/// Zeros a gradient in taccWeightsBlocked, for the rows of output channels that only fill a block; those of a gradient
/// that is added to are zeros already. Nothing to do in taccWeightsKcrs.
void clearGradient(float* gradient, taccWeightLayout_t layout, const Shape& shape, bool accumulates);

/// Brings a gradient that is complete in blocked layout to the caller's: to what is there, or in its place.
void deliverGradient(const float* blocked, float* kcrs, const Shape& shape, bool accumulates,
                     const TaskExecutor& executor);

}  // namespace tacc::conv
