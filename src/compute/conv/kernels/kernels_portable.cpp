// The kernels for what every CPU of the architecture has: 4 floats, in 16 registers (SSE2) or 32 (NEON).
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_VECTOR_REGISTER "w"
#define TACC_REGISTERS 32
#define TACC_PIXELS 6, 3, 0, 0
#define TACC_ROWS 6, 3, 0, 0
#define TACC_ISA_NAME "neon"
#else
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_PIXELS 2, 1, 0, 0
#define TACC_ROWS 2, 1, 0, 0
#define TACC_ISA_NAME "sse2"
#endif
#include "compute/conv/kernels/table-inl.hpp"

namespace tacc::conv {

const KernelSet& portableKernels() {
  static constexpr KernelSet kernels = portable::makeKernels(TACC_ISA_NAME);
  return kernels;
}

}  // namespace tacc::conv
