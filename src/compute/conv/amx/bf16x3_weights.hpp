// Weights as tiles: pairs of channels that are read, of one block that is written.
#pragma once

#include "compute/conv/amx/bf16x3_jobs.hpp"

namespace tacc::conv {

class Bf16x3Weights {
 public:
  /// Of the weights in the description's layout, which have to stay: of `joined` times as many groups as it has.
  Bf16x3Weights(const Description& description, int joined, const Bf16x3Kernels& kernels, const float* weights);

  /// A tile for each part of the numbers, one after the other: of a pair of blocks that are read, of a block that is
  /// written, both of a group, and of a tap of the kernel, or a line of it (readsLines).
  void pack(int group, int pair, int block, int kernelTap, float* to) const;

 private:
  void gather(int group, int inBlock, int outBlock, int kernelTap, float* rows) const;

  void gatherJoined(int group, int inBlock, int outBlock, int kernelTap, float* rows) const;

  const Description& description_;
  Shape separate_;  // whose groups are not joined
  int joined_;
  const Bf16x3Kernels& kernels_;
  const float* weights_;
  SplitSides sides_;
  bool readsLines_;
};

}  // namespace tacc::conv
