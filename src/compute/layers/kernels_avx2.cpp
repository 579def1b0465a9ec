// The layers' kernels for AVX2 with FMA.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#include "compute/layers/table-inl.hpp"

namespace tacc::layers {

const LayerKernels& avx2Table() {
  static constexpr LayerKernels table = avx2::makeTable("avx2");
  return table;
}

}  // namespace tacc::layers
