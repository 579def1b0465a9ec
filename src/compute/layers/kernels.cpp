#include "compute/layers/kernels.hpp"

namespace tacc::layers {

const LayerKernels& kernelTable(std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512") return avx512Table();
  if (isa == "avx2") return avx2Table();
#endif
  static_cast<void>(isa);
  return portableTable();
}

}  // namespace tacc::layers
