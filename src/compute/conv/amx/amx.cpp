// Whether there is AMX: the CPU has it, and the kernel lets the process use its large registers.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compute/conv/amx/amx_kernels.hpp"

namespace tacc::conv {
namespace {

bool hasTiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned tileBit = 1U << 24, bfloat16Bit = 1U << 22;
  return (edx & tileBit) != 0 && (edx & bfloat16Bit) != 0 && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
}

/// Linux saves the tiles' registers for processes that ask for them.
bool isAllowed() {
  constexpr long requestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

}  // namespace

const Bf16x3Kernels* amxKernels() {
  static const Bf16x3Kernels* const kernels = hasTiles() && isAllowed() ? &amxKernelTable() : nullptr;
  return kernels;
}

}  // namespace tacc::conv
