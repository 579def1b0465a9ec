#include "compute/conv/weights.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::conv {
namespace {

template <class Assign>
void forEachWeight(taccWeightLayout_t fromLayout, taccWeightLayout_t toLayout, const Shape& shape,
                   const Assign& assign) {
  for (int g = 0; g < shape.groups; ++g) {
    for (int ob = 0; ob < ceilDivide(shape.outPerGroup(), blockLength); ++ob) {
      for (int ib = 0; ib < ceilDivide(shape.inPerGroup(), blockLength); ++ib) {
        for (int r = 0; r < shape.kernelHeight; ++r) {
          for (int s = 0; s < shape.kernelWidth; ++s) {
            const WeightBlock source = weightBlock(shape, fromLayout, g, ob, ib, r, s);
            const WeightBlock target = weightBlock(shape, toLayout, g, ob, ib, r, s);
            for (int c = 0; c < source.ins; ++c) {
              for (int k = 0; k < source.outs; ++k) {
                assign(target.base + k * target.outStep + c * target.inStep,
                       source.base + k * source.outStep + c * source.inStep);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

WeightBlock weightBlock(const Shape& shape, taccWeightLayout_t layout, int group, int outBlock, int inBlock, int r,
                        int s) {
  const std::ptrdiff_t taps = std::ptrdiff_t{shape.kernelHeight} * shape.kernelWidth;
  const std::ptrdiff_t tap = std::ptrdiff_t{r} * shape.kernelWidth + s;
  const int ins = shape.inPerGroup();
  const int outs = shape.outPerGroup();
  const int firstIn = inBlock * blockLength;
  const int firstOut = outBlock * blockLength;
  const int insHere = std::min(blockLength, ins - firstIn);
  const int outsHere = std::min(blockLength, outs - firstOut);
  if (layout == taccWeightsKcrs) {
    const std::ptrdiff_t row = std::ptrdiff_t{ins} * taps;
    return {(std::ptrdiff_t{group} * outs + firstOut) * row + firstIn * taps + tap, row, taps, outsHere, insHere};
  }
  if (shape.isDepthwise()) {  // groups share blocks
    const std::ptrdiff_t block = group / blockLength;
    return {(block * taps + tap) * blockLength + group % blockLength, 1, blockLength, outsHere, insHere};
  }
  const std::ptrdiff_t ofBlock = blockLength * std::ptrdiff_t{ins} * taps;
  const std::ptrdiff_t blocks = ceilDivide(outs, blockLength);
  return {(group * blocks + outBlock) * ofBlock + (firstIn * taps + tap * insHere) * blockLength, 1, blockLength,
          outsHere, insHere};
}

void reorderWeights(taccWeightLayout_t fromLayout, const float* from, taccWeightLayout_t toLayout, float* to,
                    const Shape& shape) {
  const std::size_t floats =
      weightFloats(toLayout, shape.outChannels, shape.inChannels, shape.kernelHeight, shape.kernelWidth, shape.groups);
  if (fromLayout == toLayout) {
    std::memcpy(to, from, floats * sizeof(float));
    return;
  }
  if (toLayout == taccWeightsBlocked) std::fill_n(to, floats, 0.0F);  // what pads the last block
  forEachWeight(fromLayout, toLayout, shape,
                [&](std::ptrdiff_t target, std::ptrdiff_t source) { to[target] = from[source]; });
}

void addWeights(taccWeightLayout_t fromLayout, const float* from, taccWeightLayout_t toLayout, float* to,
                const Shape& shape) {
  forEachWeight(fromLayout, toLayout, shape,
                [&](std::ptrdiff_t target, std::ptrdiff_t source) { to[target] += from[source]; });
}

void clearGradient(float* gradient, taccWeightLayout_t layout, const Shape& s, bool accumulates) {
  if (layout == taccWeightsKcrs || accumulates) return;
  std::memset(
      gradient, 0,
      sizeof(float) * weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
}

void deliverGradient(const float* blocked, float* kcrs, const Shape& shape, bool accumulates) {
  const auto deliver = accumulates ? addWeights : reorderWeights;
  deliver(taccWeightsBlocked, blocked, taccWeightsKcrs, kcrs, shape);
}

}  // namespace tacc::conv
