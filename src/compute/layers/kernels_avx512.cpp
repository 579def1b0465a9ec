// The layers' kernels for AVX-512, its foundation alone.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#include "compute/layers/table-inl.hpp"

namespace tacc::layers {

const LayerKernels& avx512Table() {
  static constexpr LayerKernels table = avx512::makeTable("avx512");
  return table;
}

}  // namespace tacc::layers
