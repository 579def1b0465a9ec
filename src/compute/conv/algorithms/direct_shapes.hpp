// Convolutions over blocked images as correlations of one group of channels.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// Forward. Taps come line by line of the kernel. A product of matrices is one long line. Layouts are those of input
/// and output, and not NCHW. `pairs` as in a Description; of backwardPhases() too.
DirectShape forwardShape(const Shape& s, taccLayout_t inLayout = taccLayoutNchw16c,
                         taccLayout_t outLayout = taccLayoutNchw16c, Pairs pairs = {});

/// Whether lines are so short, and many, that tiles of pixels below each other may be better; and the same correlation
/// with lines and columns in each other's place.
bool isNarrow(const DirectShape& shape);
DirectShape turned(DirectShape shape);

/// Backward to the input, a part of it: with stride s, input pixels whose coordinates are equal modulo s see the same
/// taps, and are a correlation of stride 1 that writes every s-th pixel.
struct BackwardPhase {
  std::ptrdiff_t output;  // of its first pixel, in floats
  std::vector<int> taps;  // r * kernelWidth + s
  DirectShape driver;
};

/// Behind the name of a plan's kernel.
constexpr const char* pairsText(Pairs pairs) { return pairs.areWritten ? " bf16 pairs" : ""; }

/// Both in one float, rounded to bfloat16, the first one in the lower half.
float pairOf(float first, float second);

/// All phases; the first one has the most pixels. Layouts are those of the forward convolution's input and output.
std::vector<BackwardPhase> backwardPhases(const Shape& s, taccLayout_t inLayout = taccLayoutNchw16c,
                                          taccLayout_t outLayout = taccLayoutNchw16c, Pairs pairs = {});

/// The steps of a tensor whose floats are pairs, or are not.
constexpr BlockSteps stepsOfPairs(const BlockSteps& steps, bool arePairs) {
  return arePairs ? BlockSteps{steps.pixel / 2, steps.block / 2, steps.image / 2} : steps;
}

/// Whether tiles write a tensor in place, also where the last block is cut; pairs of channels are not cut.
constexpr bool writesInPlace(taccLayout_t layout, int channels, Pairs pairs = {}) {
  return hasWholeBlocks(layout, channels) || (hasBlockSteps(layout) && !pairs.areWritten);
}

/// Whether groups begin and end within blocks, and are read and written there as tensors of their own: in NHWC on both
/// sides channels follow each other from any one on.
inline bool groupsCutNhwc(const Description& d) {
  const bool areNhwc = d.inputLayout == taccLayoutNhwc && d.outputLayout == taccLayoutNhwc;
  return areNhwc && !d.shape.blocksFitGroups() && !d.shape.isDepthwise() && !d.pairs.areRead && !d.pairs.areWritten;
}
/// Whether there are groups in that way, or in whole blocks.
inline bool findsGroups(const Description& d) { return d.shape.blocksFitGroups() || groupsCutNhwc(d); }
/// From group to group.
constexpr std::ptrdiff_t groupStep(const BlockSteps& steps, taccLayout_t layout, int perGroup) {
  return layout == taccLayoutNhwc && perGroup % blockLength != 0 ? perGroup
                                                                 : ceilDivide(perGroup, blockLength) * steps.block;
}

/// Writes the 16 weights of a value that is read, or of two, to `to`: `weight(value, lane)` is one of them, `values`
/// how many there are in its block.
template <class Weight>
void packValue(float* to, int value, int values, bool readsPairs, const Weight& weight) {
  for (int lane = 0; lane < blockLength; ++lane) {
    to[lane] = !readsPairs ? weight(value, lane)
                           : pairOf(weight(2 * value, lane), 2 * value + 1 < values ? weight(2 * value + 1, lane) : 0);
  }
}

}  // namespace tacc::conv
