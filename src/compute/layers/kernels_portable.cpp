// The layers' kernels for what every CPU of the architecture has.
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_ISA_NAME "neon"
#else
#define TACC_ISA_NAME "sse2"
#endif
#include "compute/layers/table-inl.hpp"

namespace tacc::layers {

const LayerKernels& portableTable() {
  static constexpr LayerKernels table = portable::makeTable(TACC_ISA_NAME);
  return table;
}

}  // namespace tacc::layers
