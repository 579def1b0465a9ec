// What the passes of grouped convolutions share.
#pragma once

#include "compute/conv/layout.hpp"
#include "compute/conv/plan.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {

/// Place of the weight of output channel `out` and input channel `in` of a group.
inline std::ptrdiff_t groupWeightAt(const Description& d, int group, int out, int in, int tap) {
  const WeightBlock block = weightBlock(d.shape, d.weightLayout, group, out / blockLength, in / blockLength,
                                        tap / d.shape.kernelWidth, tap % d.shape.kernelWidth);
  return block.base + out % blockLength * block.outStep + in % blockLength * block.inStep;
}

/// The input in blocks of channels: as it is, or reordered into the workspace.
class BlockedInput {
 public:
  BlockedInput(const Description& d, const KernelSet& kernels)
      : layout_(d.inputLayout), shape_(d.shape), kernels_(layers::kernelTable(kernels.isa)) {}

  std::size_t workspaceBytes() const {
    if (layout_ == taccLayoutNchw16c) return 0;
    return sizeof(float) * floatsOf(taccLayoutNchw16c) * static_cast<std::size_t>(shape_.batch);
  }
  /// The copy lies `offset` bytes behind the beginning of the workspace.
  const float* blocked(const Buffers& buffers, std::size_t offset, const Executor& executor) const {
    if (layout_ == taccLayoutNchw16c) return buffers.input;
    auto* const copy = reinterpret_cast<float*>(static_cast<std::byte*>(buffers.workspace) + offset);
    executor.forEach(static_cast<std::size_t>(shape_.batch), [&](std::size_t image, int) {
      reorder(layout_, buffers.input + image * floatsOf(layout_), taccLayoutNchw16c,
              copy + image * floatsOf(taccLayoutNchw16c), 1, shape_.inChannels, shape_.height, shape_.width, kernels_);
    });
    return copy;
  }

 private:
  std::size_t floatsOf(taccLayout_t layout) const {
    return tensorFloats(layout, 1, shape_.inChannels, shape_.height, shape_.width);
  }

  taccLayout_t layout_;
  Shape shape_;
  const layers::KernelTable& kernels_;
};

}  // namespace tacc::conv
