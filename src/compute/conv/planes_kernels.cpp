#include "compute/conv/planes_kernels.hpp"

#include "compute/conv/kernels.hpp"

namespace tacc::conv {

const PlaneKernels& planeKernels(const KernelSet& kernels) {
#if defined(__x86_64__)
  if (kernels.vectors == "avx512") return avx512PlaneKernels();
  if (kernels.vectors == "avx2") return avx2PlaneKernels();
#endif
  return portablePlaneKernels();
}

}  // namespace tacc::conv
