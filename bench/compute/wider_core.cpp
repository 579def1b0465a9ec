#include "compute/wider_core.hpp"

#include <algorithm>
#include <array>

namespace tacc::bench {
namespace {

/// As in OpenBLAS 0.3.21, and what later ones added.
constexpr std::array<std::string_view, 3> coresWithAvx512 = {"SkylakeX", "Cooperlake", "SapphireRapids"};

/// Those that its kernels for x86 without AVX are named after, as in OpenBLAS 0.3.21.
constexpr std::array<std::string_view, 16> coresWithoutAvx = {
    "Katmai",     "Coppermine", "Northwood", "Prescott", "Banias",       "Atom",      "Core2", "Penryn",
    "Dunnington", "Nehalem",    "Athlon",    "Opteron",  "Opteron_SSE3", "Barcelona", "Nano",  "Bobcat"};

bool isAmong(const auto& cores, std::string_view core) {
  return std::find(cores.begin(), cores.end(), core) != cores.end();
}

}  // namespace

std::string_view widerCore(std::string_view core, std::string_view isa) {
  if (isa == "amx" || isa == "avx512") return isAmong(coresWithAvx512, core) ? "" : "SkylakeX";
  return isa == "avx2" && isAmong(coresWithoutAvx, core) ? "Haswell" : "";
}

}  // namespace tacc::bench
