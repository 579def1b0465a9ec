#include "compute/conv/weights.hpp"

#include <algorithm>
#include <cstring>

#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// From tap to tap of a block of `ins` input channels.
std::ptrdiff_t tapStep(taccWeightLayout_t layout, int ins) {
  return layout == taccWeightsKcrs ? 1 : std::ptrdiff_t{ins} * blockLength;
}

/// Looked up once: reading the environment takes longer than reordering small weights.
const layers::LayerKernels& transposing() {
  static const layers::LayerKernels& kernels = layers::kernelTable(bestKernels().vectors);
  return kernels;
}

/// Whether the blocks of output channels are gone through as vectors.
bool hasVectors(const Shape& shape) { return !shape.isDepthwise() && shape.outPerGroup() >= blockLength; }

/// Channel-wise, 16 groups at a time: calls assign(place in KCRS, place in blocks).
template <class Assign>
void forEachDepthwise(const Shape& shape, const Assign& assign) {
  const std::ptrdiff_t taps = std::ptrdiff_t{shape.kernelHeight} * shape.kernelWidth;
  for (int first = 0; first < shape.groups; first += blockLength) {
    const std::ptrdiff_t block = first * taps;
    const auto channels = [&](int count) __attribute__((always_inline)) {
      for (std::ptrdiff_t tap = 0; tap < taps; ++tap) {
        for (int c = 0; c < count; ++c) assign(block + c * taps + tap, block + tap * blockLength + c);
      }
    };
    if (shape.groups - first >= blockLength) {
      channels(blockLength);  // unrolled
    } else {
      channels(shape.groups - first);
    }
  }
}

/// Calls visit(group, block) for the blocks of output channels: the whole ones that vectors go through, or the others.
template <class Visit>
void forEachOutBlock(const Shape& shape, bool isWhole, const Visit& visit) {
  const int whole = hasVectors(shape) ? shape.outPerGroup() / blockLength : 0;
  const int from = isWhole ? 0 : whole;
  const int to = isWhole ? whole : ceilDivide(shape.outPerGroup(), blockLength);
  for (int g = 0; g < shape.groups; ++g) {
    for (int block = from; block < to; ++block) visit(g, block);
  }
}

/// Calls visit(place of a block in KCRS, its place in blocks, its input channels, from row to row of KCRS) for the
/// whole blocks of output channels. Of one tap, all blocks of input channels are one.
template <class Visit>
void forEachWholeBlock(const Shape& shape, const Visit& visit) {
  const bool hasOneTap = shape.kernelHeight * shape.kernelWidth == 1;
  forEachOutBlock(shape, true, [&](int group, int block) {
    for (int ib = 0; ib < (hasOneTap ? 1 : ceilDivide(shape.inPerGroup(), blockLength)); ++ib) {
      const WeightBlock kcrs = weightBlock(shape, taccWeightsKcrs, group, block, ib, 0, 0);
      const WeightBlock blocked = weightBlock(shape, taccWeightsBlocked, group, block, ib, 0, 0);
      visit(kcrs.base, blocked.base, hasOneTap ? shape.inPerGroup() : blocked.ins, kcrs.outStep);
    }
  });
}

/// The whole blocks of output channels of a blocked tensor to KCRS: added to what is there, or in its place.
void blocksToRows(const float* from, float* to, const Shape& shape, bool adds) {
  const int taps = shape.kernelHeight * shape.kernelWidth;
  forEachWholeBlock(shape, [&](std::ptrdiff_t kcrs, std::ptrdiff_t blocked, int ins, std::ptrdiff_t row) {
    transposing().fromTaps(from + blocked, to + kcrs, row, ins, taps, adds);
  });
}

/// The reverse of blocksToRows().
void rowsToBlocks(const float* from, float* to, const Shape& shape) {
  const int taps = shape.kernelHeight * shape.kernelWidth;
  forEachWholeBlock(shape, [&](std::ptrdiff_t kcrs, std::ptrdiff_t blocked, int ins, std::ptrdiff_t row) {
    transposing().toTaps(from + kcrs, row, ins, taps, to + blocked);
  });
}

/// In the order of KCRS, whose rows may be a power of two apart: of blocks a few KiB are gone through over and over.
/// Without the whole blocks of output channels, where those are vectors.
template <class Assign>
void forEachWeight(taccWeightLayout_t fromLayout, taccWeightLayout_t toLayout, const Shape& shape,
                   const Assign& assign) {
  if (shape.isDepthwise()) {
    if (fromLayout == taccWeightsBlocked) {
      forEachDepthwise(shape, assign);
    } else {
      forEachDepthwise(shape, [&](std::ptrdiff_t inRow, std::ptrdiff_t inBlock) { assign(inBlock, inRow); });
    }
    return;
  }
  const int taps = shape.kernelHeight * shape.kernelWidth;
  forEachOutBlock(shape, false, [&](int g, int ob) {
    for (int ib = 0; ib < ceilDivide(shape.inPerGroup(), blockLength); ++ib) {
      const WeightBlock source = weightBlock(shape, fromLayout, g, ob, ib, 0, 0);
      const WeightBlock target = weightBlock(shape, toLayout, g, ob, ib, 0, 0);
      const std::ptrdiff_t sourceTap = tapStep(fromLayout, source.ins);
      const std::ptrdiff_t targetTap = tapStep(toLayout, target.ins);
      for (int k = 0; k < source.outs; ++k) {
        for (int c = 0; c < source.ins; ++c) {
          const std::ptrdiff_t to = target.base + k * target.outStep + c * target.inStep;
          const std::ptrdiff_t from = source.base + k * source.outStep + c * source.inStep;
          for (int tap = 0; tap < taps; ++tap) assign(to + tap * targetTap, from + tap * sourceTap);
        }
      }
    }
  });
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
  const bool hasPadding = (shape.isDepthwise() ? shape.groups : shape.outPerGroup()) % blockLength != 0;
  if (toLayout == taccWeightsBlocked && hasPadding) std::fill_n(to, floats, 0.0F);  // the last block's
  if (toLayout == taccWeightsBlocked) {
    rowsToBlocks(from, to, shape);
  } else {
    blocksToRows(from, to, shape, false);
  }
  forEachWeight(fromLayout, toLayout, shape,
                [&](std::ptrdiff_t target, std::ptrdiff_t source) { to[target] = from[source]; });
}

void addWeights(const float* blocked, float* kcrs, const Shape& shape) {
  blocksToRows(blocked, kcrs, shape, true);
  forEachWeight(taccWeightsBlocked, taccWeightsKcrs, shape,
                [&](std::ptrdiff_t target, std::ptrdiff_t source) { kcrs[target] += blocked[source]; });
}

void deliverBlock(const WeightBlock& block, const float* sums, std::ptrdiff_t row, bool accumulates, float* gradient) {
  if (block.outStep == 1 && block.inStep == blockLength && !accumulates) {
    float rows[blockLength * blockLength] = {};
    for (int k = 0; k < block.outs; ++k) std::copy_n(sums + k * row, block.ins, rows + k * blockLength);
    transposing().toBlocks(rows, blockLength, blockLength, gradient + block.base, block.ins, false);
    return;
  }
  for (int k = 0; k < block.outs; ++k) {
    const float* const from = sums + k * row;
    float* const to = gradient + block.base + k * block.outStep;
    for (int c = 0; c < block.ins; ++c) {
      float& weight = to[c * block.inStep];
      weight = accumulates ? weight + from[c] : from[c];
    }
  }
}

void deliverRows(const float* sums, float* rows, int taps, bool accumulates) {
  transposing().fromTaps(sums, rows, taps, 1, taps, accumulates);
}

void clearGradient(float* gradient, taccWeightLayout_t layout, const Shape& s, bool accumulates) {
  if (layout == taccWeightsKcrs || accumulates) return;
  std::memset(
      gradient, 0,
      sizeof(float) * weightFloats(layout, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups));
}

void findTransposes() { (void)transposing(); }

void deliverGradient(const float* blocked, float* kcrs, const Shape& shape, bool accumulates,
                     const TaskExecutor& executor) {
  // Of blocks of output channels, which follow each other in either layout.
  constexpr std::ptrdiff_t floatsOfTask = 32 * 1024;
  const std::ptrdiff_t ofBlock =
      std::ptrdiff_t{blockLength} * shape.inPerGroup() * shape.kernelHeight * shape.kernelWidth;
  const bool isCut = shape.groups == 1 && executor.workers() > 1;
  const auto together = static_cast<int>(std::clamp<std::ptrdiff_t>(floatsOfTask / ofBlock, 1, shape.outBlocks()));
  const int blocks = isCut ? together : shape.outBlocks();
  executor.forEach(static_cast<std::size_t>(ceilDivide(shape.outBlocks(), blocks)), [&](std::size_t index, int) {
    const int first = static_cast<int>(index) * blocks;
    Shape some = shape;
    some.outChannels = std::min(blocks * blockLength, shape.outChannels - first * blockLength);
    const float* const from = blocked + first * ofBlock;
    float* const to = kcrs + first * ofBlock;
    if (accumulates) {
      addWeights(from, to, some);
    } else {
      reorderWeights(taccWeightsBlocked, from, taccWeightsKcrs, to, some);
    }
  });
}

}  // namespace tacc::conv
