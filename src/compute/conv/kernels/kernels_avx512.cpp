// The kernels for AVX-512: 32 registers of 16 floats. Compiled for its foundation alone, so Xeon Phi runs them too.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_PIXELS 14, 14, 9, 6
#define TACC_ROWS 16, 12, 8, 6
#include "compute/conv/kernels/table-inl.hpp"

namespace tacc::conv {

const KernelSet& avx512Kernels() {
  static constexpr KernelSet kernels = avx512::makeKernels("avx512");
  return kernels;
}

}  // namespace tacc::conv
