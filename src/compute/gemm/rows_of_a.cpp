#include "compute/gemm/rows_of_a.hpp"

#include <algorithm>

#include "compute/conv/cost.hpp"

namespace tacc::gemm {
namespace {

using conv::blockLength;

/// Rows a multiple of this many bytes apart share a few places of the L1 cache, where a tile needs many rows at
/// once.
constexpr std::size_t aliasBytes = 2048;

bool alias(std::ptrdiff_t stride) { return static_cast<std::size_t>(stride) * sizeof(float) % aliasBytes == 0; }

std::ptrdiff_t strideOfCopies(int k) {
  const std::ptrdiff_t rounded = (std::ptrdiff_t{k} + blockLength - 1) / blockLength * blockLength;
  return alias(rounded) ? rounded + blockLength : rounded;
}

}  // namespace

RowsOfA::RowsOfA(const Description& d, const conv::KernelSet& kernels)
    : m_(d.m),
      k_(d.k),
      lda_(d.lda),
      copyStride_(strideOfCopies(d.k)),
      isTransposed_(d.transposeA),
      areAlike_(!d.transposeA && d.m > 4 && alias(d.lda)),
      kernels_(layers::kernelTable(kernels.vectors)) {}

void RowsOfA::copy(const float* a, int from, int to, float* copy) const {
  if (isTransposed_) {
    kernels_.transpose(a + from, lda_, k_, to - from, copy, copyStride_, false);
    return;
  }
  for (int i = from; i < to; ++i) std::copy_n(a + i * lda_, k_, copy + (i - from) * copyStride_);
}

double RowsOfA::copyCycles() const {
  if (!areAlike_) return 0;
  const double floats = double(m_) * k_;
  return floats * (conv::staysInL2(static_cast<std::size_t>(floats) * sizeof(float)) ? 0.2 : 0.6);
}

}  // namespace tacc::gemm
