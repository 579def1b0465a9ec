#include "compute/conv/kernels.hpp"

#include "base/environment.hpp"
#include "compute/isa.hpp"

namespace tacc::conv {

std::vector<const KernelSet*> availableKernels() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) sets.push_back(&avx512Kernels());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&avx2Kernels());
#endif
  sets.push_back(&portableKernels());
  return sets;
}

const KernelSet& bestKernels() {
  const Isa widest = chooseIsa();
  const std::vector<const KernelSet*> sets = availableKernels();
  // Highway's AVX-512 is more than these kernels need: without a limit they take what there is.
  if (processEnvironment().isa == "best") return *sets.front();
  for (const KernelSet* set : sets) {
    if (set->isa == widest.name) return *set;
  }
  return portableKernels();
}

}  // namespace tacc::conv
