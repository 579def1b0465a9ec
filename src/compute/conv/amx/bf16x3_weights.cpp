#include "compute/conv/amx/bf16x3_weights.hpp"

#include <algorithm>

#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/amx/line_rows.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {

Bf16x3Weights::Bf16x3Weights(const Description& description, const Bf16x3Kernels& kernels, const float* weights)
    : description_(description),
      kernels_(kernels),
      weights_(weights),
      sides_(description),
      readsLines_(readsLines(description)) {}

/// Those of one block that is read, in rows of output channels.
void Bf16x3Weights::gather(int group, int inBlock, int outBlock, int kernelTap, float* rows) const {
  std::fill_n(rows, tileFloats, 0.0F);
  if (inBlock >= sides_.inBlocks) return;
  const Shape& s = description_.shape;
  if (readsLines_) {
    gatherLine(s, description_.weightLayout, weights_, {kernelTap, inBlock, outBlock}, rows);
    return;
  }
  const WeightBlock block =
      weightBlock(s, description_.weightLayout, group, sides_.isForward ? outBlock : inBlock,
                  sides_.isForward ? inBlock : outBlock, kernelTap / s.kernelWidth, kernelTap % s.kernelWidth);
  const int ins = sides_.isForward ? block.ins : block.outs, outs = sides_.isForward ? block.outs : block.ins;
  const std::ptrdiff_t inStep = sides_.isForward ? block.inStep : block.outStep;
  const std::ptrdiff_t outStep = sides_.isForward ? block.outStep : block.inStep;
  for (int in = 0; in < ins; ++in) {
    for (int out = 0; out < outs; ++out) {
      rows[in * blockLength + out] = weights_[block.base + in * inStep + out * outStep];
    }
  }
}

void Bf16x3Weights::pack(int group, int pair, int block, int kernelTap, float* to) const {
  alignas(64) float gathered[2][tileFloats];
  for (int which = 0; which < 2; ++which) gather(group, 2 * pair + which, block, kernelTap, gathered[which]);
  if (kernels_.parts == 1) {
    // Channels that follow each other are pairs, as in the rows.
    for (int k = 0; k < tileRows; ++k) {
      const float* const first = gathered[2 * k / blockLength] + 2 * k % blockLength * blockLength;
      std::transform(first, first + blockLength, first + blockLength, to + k * blockLength, pairOf);
    }
    return;
  }
  const Bf16x3Run rows{0, 0, blockLength};
  Bf16x3Work work{.run = &rows,
                  .end = &rows + 1,
                  .rows = blockLength,
                  .fetchRun = &rows + 1,
                  .even = gathered[0],
                  .odd = gathered[1],
                  .evenStep = blockLength,
                  .oddStep = blockLength,
                  .output = reinterpret_cast<std::byte*>(to),
                  .partStep = tileBytes};
  kernels_.split(work, blockLength);
}

}  // namespace tacc::conv
