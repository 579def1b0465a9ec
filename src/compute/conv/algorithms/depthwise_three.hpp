// Gradients of the weights of channel-wise kernels three wide and up to three high by kernels of their own, in blocks.
#pragma once

#include <cstddef>
#include <optional>

#include "compute/conv/kernels/depthwise_three_kernels.hpp"
#include "compute/conv/plan.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {

class DepthwiseThree {
 public:
  /// Without a value where none of the kernels serves the description.
  static std::optional<DepthwiseThree> find(const Description& d, const KernelSet& kernels);

  /// Of lines [from, to) of the output of all images, for some blocks: their sums, one block behind the other, or what
  /// is added to these.
  void sum(const Buffers& buffers, TaskPart blocks, TaskPart lines, bool accumulates, float* sums) const;

  /// For one image and block.
  static double cycles(const Description& d, const KernelSet& kernels);

 private:
  DepthwiseThree(const Description& d, DepthwiseThreeKernel kernel, const DepthwiseThreeCall& call);

  DepthwiseThreeKernel kernel_;
  DepthwiseThreeCall call_;  // but for tensors, lines and sums
  int channels_;
  std::size_t height_;  // of the output
  std::size_t imagesAtOnce_;
};

}  // namespace tacc::conv
