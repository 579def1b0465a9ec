#include "compute/simd/cpu_targets.hpp"

#include "compute/simd/targets.hpp"

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM
#include <sys/auxv.h>
#endif

namespace tacc {

// A target's code may use everything that Highway tells the compiler for it (hwy/ops/set_macros-inl.h), and lzcnt from
// AVX2 on and AVX-512CD, which its later versions add.
#if HWY_ARCH_X86

namespace {

/// What clang does not know by name.
bool hasHalfConversions() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool countsLeadingZeros() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned lzcntBit = 1U << 5;
  return __get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx) != 0 && (ecx & lzcntBit) != 0;
}

}  // namespace

std::int64_t findCpuTargets() {
  std::int64_t targets = 0;
  if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("sse4.1") || !__builtin_cpu_supports("sse4.2") ||
      !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("aes")) {
    return targets;
  }
  targets |= HWY_SSE4;
  if (!__builtin_cpu_supports("avx") || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("fma") || !hasHalfConversions() ||
      !countsLeadingZeros()) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512cd") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw")) {
    return targets;
  }
  return targets | HWY_AVX3;
}

#elif HWY_ARCH_ARM_A64

std::int64_t findCpuTargets() {
  constexpr unsigned long aesBit = 1UL << 3;  // HWCAP_AES; vectors themselves every such CPU has
  return (getauxval(AT_HWCAP) & aesBit) != 0 ? HWY_NEON : 0;
}

#else

std::int64_t findCpuTargets() { return HWY_STATIC_TARGET; }

#endif

}  // namespace tacc
