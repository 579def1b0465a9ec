#include "compute/simd/isa.hpp"

#include <string>

#include "compute/simd/targets.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::int64_t scalarTargets = HWY_SCALAR | HWY_EMU128;  // one of the two, depending on the compiler
/// Of each kind of CPU the widest first.
constexpr Isa knownIsas[] = {
    {"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"sse4", HWY_SSE4}, {"neon", HWY_NEON}, {"scalar", scalarTargets}};
constexpr std::string_view allowedNames = "scalar, sse4, avx2, avx512, amx, neon, best";

std::string joinNames(const std::vector<Isa>& isas) {
  std::string text;
  for (const Isa& isa : isas) text += (text.empty() ? "" : ", ") + std::string(isa.name);
  return text;
}

}  // namespace

std::vector<Isa> availableIsas() {
  const std::int64_t targets = (hwy::SupportedTargets() | scalarTargets) & HWY_TARGETS;
  std::vector<Isa> isas;
  for (const Isa& isa : knownIsas) {
    if (isa.target & targets) isas.push_back({isa.name, isa.target & targets});
  }
  if (isas.empty()) fail(taccSystemError, "This CPU has none of the instruction sets that tacc was compiled for");
  return isas;
}

Isa bestIsa(std::string_view widest) {
  const std::vector<Isa> available = availableIsas();
  if (widest == "best") return available.front();
  if (widest == "amx") return bestIsa("avx512");  // it multiplies only, beside the vectors of AVX-512
  bool reached = false;
  for (const Isa& isa : knownIsas) {
    reached = reached || isa.name == widest;
    if (!reached) continue;
    if (isa.name == widest && (isa.target & HWY_TARGETS) == 0) {
      fail(taccInvalidArgument, "TACC_ISA={} is not for this kind of CPU; here it may be {} or best", widest,
           joinNames(available));
    }
    for (const Isa& candidate : available) {
      if (candidate.name == isa.name) return candidate;
    }
  }
  if (reached) {
    fail(taccInvalidArgument, "TACC_ISA={} leaves nothing that this CPU has; here it may be {} or best", widest,
         joinNames(available));
  }
  fail(taccInvalidArgument, "TACC_ISA=\"{}\" is not an instruction set; allowed are {}", widest, allowedNames);
}

Isa chooseIsa() { return bestIsa(processEnvironment().isa); }

}  // namespace tacc
