#include "compute/conv/weights.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::conv {
namespace {

/// From tap to tap of a block of `ins` input channels.
std::ptrdiff_t tapStep(taccWeightLayout_t layout, const Shape& shape, int ins) {
  if (layout == taccWeightsKcrs) return 1;
  return shape.isDepthwise() ? blockLength : std::ptrdiff_t{ins} * blockLength;
}

/// In the order of KCRS, whose rows may be a power of two apart: of blocks a few KiB are gone through over and over.
template <class Assign>
void forEachWeight(taccWeightLayout_t fromLayout, taccWeightLayout_t toLayout, const Shape& shape,
                   const Assign& assign) {
  const int taps = shape.kernelHeight * shape.kernelWidth;
  for (int g = 0; g < shape.groups; ++g) {
    for (int ob = 0; ob < ceilDivide(shape.outPerGroup(), blockLength); ++ob) {
      for (int ib = 0; ib < ceilDivide(shape.inPerGroup(), blockLength); ++ib) {
        const WeightBlock source = weightBlock(shape, fromLayout, g, ob, ib, 0, 0);
        const WeightBlock target = weightBlock(shape, toLayout, g, ob, ib, 0, 0);
        const std::ptrdiff_t sourceTap = tapStep(fromLayout, shape, source.ins);
        const std::ptrdiff_t targetTap = tapStep(toLayout, shape, target.ins);
        for (int k = 0; k < source.outs; ++k) {
          for (int c = 0; c < source.ins; ++c) {
            const std::ptrdiff_t to = target.base + k * target.outStep + c * target.inStep;
            const std::ptrdiff_t from = source.base + k * source.outStep + c * source.inStep;
            for (int tap = 0; tap < taps; ++tap) assign(to + tap * targetTap, from + tap * sourceTap);
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
