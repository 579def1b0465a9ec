#include "compute/openblas_core.hpp"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "tacc/compute.h"

namespace tacc::bench {
namespace {

/// Those that its kernels for x86 without AVX are named after, as in OpenBLAS 0.3.21.
constexpr std::array<std::string_view, 16> coresWithoutAvx = {
    "Katmai",     "Coppermine", "Northwood", "Prescott", "Banias",       "Atom",      "Core2", "Penryn",
    "Dunnington", "Nehalem",    "Athlon",    "Opteron",  "Opteron_SSE3", "Barcelona", "Nano",  "Bobcat"};

}  // namespace

std::string openblasCore() { return openblas_get_corename(); }

void useVectorsInOpenblas(const std::vector<std::string>& peers) {
  if (std::find(peers.begin(), peers.end(), "openblas") == peers.end()) return;
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  const std::string core = openblasCore();
  const bool isOld = std::find(coresWithoutAvx.begin(), coresWithoutAvx.end(), core) != coresWithoutAvx.end();
  const char* const isa = taccComputeIsa();
  if (!isOld || isa == nullptr || std::getenv(variable) != nullptr) return;
  const std::string_view vectors = isa;
  const bool isWide = vectors == "amx" || vectors == "avx512";
  if (!isWide && vectors != "avx2") return;
  setenv(variable, isWide ? "SkylakeX" : "Haswell", 1);
  std::fprintf(stderr, "# OpenBLAS takes this CPU for %s: starting again with %s=%s\n", core.c_str(), variable,
               std::getenv(variable));
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
}

}  // namespace tacc::bench
