// Rows of A as the kernels for vectors read them: one after the other, and not a power of two apart. Others are
// brought into the workspace first, some at a time.
#pragma once

#include <cstddef>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::gemm {

/// Immutable once made.
class RowsOfA {
 public:
  RowsOfA(const Description& d, const conv::KernelSet& kernels);

  /// Whether tiles need copies. Few columns read rows as vectors, which distances do not matter to.
  bool areCopied() const { return isTransposed_ || areAlike_; }
  bool areCopiedForFew() const { return isTransposed_; }
  /// Floats from row to row, of copies or of A itself.
  std::ptrdiff_t stride(bool isCopy) const { return isCopy ? copyStride_ : lda_; }
  std::ptrdiff_t tileStride() const { return stride(areCopied()); }
  std::size_t floats(int rows) const { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(copyStride_); }
  /// Rows [from, to) of `a`, the first of them at `copy`.
  void copy(const float* a, int from, int to, float* copy) const;
  /// What copying all of them takes that few columns would read where it is; 0 where they would not.
  double copyCycles() const;

 private:
  int m_, k_;
  std::ptrdiff_t lda_, copyStride_;
  bool isTransposed_;
  bool areAlike_;  // in where they are in the L1 cache
  const layers::LayerKernels& kernels_;
};

}  // namespace tacc::gemm
