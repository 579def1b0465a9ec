#include "compute/conv/kernels.hpp"

#include "compute/conv/bf16x3.hpp"
#include "compute/simd/isa.hpp"
#include "core/environment.hpp"

namespace tacc::conv {
namespace {

#if defined(__x86_64__)
/// AVX-512's kernels and those for AMX; null where there is no AMX.
const KernelSet* amxSet() {
  static const KernelSet set = [] {
    KernelSet both = avx512Kernels();
    both.isa = "amx";
    both.split = amxKernels();
    return both;
  }();
  return set.split != nullptr ? &set : nullptr;
}
#endif

}  // namespace

std::vector<const KernelSet*> availableKernels() {
  std::vector<const KernelSet*> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (const KernelSet* const amx = amxSet()) sets.push_back(amx);
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
  const std::string& wanted = processEnvironment().isa;
  if (wanted == "best" || wanted == "amx") return *sets.front();
  for (const KernelSet* set : sets) {
    if (set->isa == widest.name) return *set;
  }
  return portableKernels();
}

}  // namespace tacc::conv
