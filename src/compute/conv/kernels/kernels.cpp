#include "compute/conv/kernels/kernels.hpp"

#include <algorithm>

#include "compute/conv/amx/bf16x3.hpp"
#include "compute/simd/isa.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"

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

#if defined(__x86_64__)
bool hasBfloat16(const KernelSet& kernels) {
  return kernels.vectors == "avx512" && __builtin_cpu_supports("avx512bf16") != 0;
}
#endif

/// Those of an instruction set, by InstructionSet::kernels; null where this CPU cannot run them.
const KernelSet* findKernels(std::string_view name) {
#if defined(__x86_64__)
  if (name == "amx") return amxSet();
#endif
#define TACC_FIND(set, isThere) \
  if (name == #set) return (isThere) ? &set##Kernels() : nullptr;
  TACC_KERNEL_SETS(TACC_FIND)
#undef TACC_FIND
  return nullptr;  // of another kind of CPU
}

}  // namespace

const KernelSet* pairKernels(const KernelSet& kernels) {
#if defined(__x86_64__)
  if (hasBfloat16(kernels)) return &avx512PairKernels();
#else
  static_cast<void>(kernels);
#endif
  return nullptr;
}

const KernelSet* bf16DepthwiseKernels(const KernelSet& kernels) {
#if defined(__x86_64__)
  // CPUs that have the one have the others too.
  const bool hasWords = __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (hasBfloat16(kernels) && hasWords) return &avx512Bf16Depthwise();
#else
  static_cast<void>(kernels);
#endif
  return nullptr;
}

std::vector<const KernelSet*> availableKernels() {
  std::vector<const KernelSet*> sets;
  for (const InstructionSet& one : instructionSetsFrom("best")) {
    const KernelSet* const set = findKernels(one.kernels);
    if (set != nullptr && std::ranges::find(sets, set) == sets.end()) sets.push_back(set);
  }
  return sets;
}

const KernelSet& bestKernels(std::string_view widest) {
  static_cast<void>(bestIsa(widest));  // throws where `widest` is not for this CPU
  for (const InstructionSet& one : instructionSetsFrom(widest))
    if (const KernelSet* const set = findKernels(one.kernels)) return *set;
  fail(taccInternalError, "no kernels of convolutions are for TACC_ISA={}", widest);
}

const KernelSet& bestKernels() { return bestKernels(processEnvironment().isa); }

}  // namespace tacc::conv
