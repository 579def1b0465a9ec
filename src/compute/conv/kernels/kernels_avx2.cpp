// The kernels for AVX2 with FMA: 16 registers of 8 floats.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_PIXELS 7, 3, 0, 0
#define TACC_ROWS 6, 3, 0, 0
#include "compute/conv/kernels/table-inl.hpp"

namespace tacc::conv {

const KernelSet& avx2Kernels() {
  static constexpr KernelSet kernels = avx2::makeKernels("avx2");
  return kernels;
}

}  // namespace tacc::conv
