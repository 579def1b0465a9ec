#include "compute/conv/amx/bf16x3_weights.hpp"

#include <algorithm>

#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/amx/line_rows.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {

Bf16x3Weights::Bf16x3Weights(const Description& description, int joined, const Bf16x3Kernels& kernels,
                             const float* weights)
    : description_(description),
      separate_(description.shape),
      joined_(joined),
      kernels_(kernels),
      weights_(weights),
      sides_(description),
      readsLines_(readsLines(description)) {
  separate_.groups *= joined;
}

/// The same where blocks have channels of several groups.
void Bf16x3Weights::gatherJoined(int group, int inBlock, int outBlock, int kernelTap, float* rows) const {
  const Shape& s = separate_;
  const int ins = sides_.isForward ? s.inPerGroup() : s.outPerGroup();
  const int outs = sides_.isForward ? s.outPerGroup() : s.inPerGroup();
  for (int row = 0; row < blockLength; ++row) {
    for (int column = 0; column < blockLength; ++column) {
      const int in = inBlock * blockLength + row, out = outBlock * blockLength + column;
      const int own = in / ins;
      if (own >= joined_ || out / outs != own) continue;
      const int k = sides_.isForward ? out % outs : in % ins, c = sides_.isForward ? in % ins : out % outs;
      const WeightBlock block = weightBlock(s, description_.weightLayout, group * joined_ + own, k / blockLength,
                                            c / blockLength, kernelTap / s.kernelWidth, kernelTap % s.kernelWidth);
      rows[row * blockLength + column] =
          weights_[block.base + k % blockLength * block.outStep + c % blockLength * block.inStep];
    }
  }
}

/// Those of one block that is read, in rows of output channels.
void Bf16x3Weights::gather(int group, int inBlock, int outBlock, int kernelTap, float* rows) const {
  std::fill_n(rows, tileFloats, 0.0F);
  if (inBlock >= sides_.inBlocks) return;
  const Shape& s = description_.shape;
  if (readsLines_) {
    gatherLine(s, description_.weightLayout, weights_, {kernelTap, inBlock, outBlock}, rows);
    return;
  }
  if (joined_ > 1) {
    gatherJoined(group, inBlock, outBlock, kernelTap, rows);
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
