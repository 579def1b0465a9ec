#include "compute/openblas_core.hpp"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <vector>

#include "compute/wider_core.hpp"
#include "tacc/compute.h"

namespace tacc::bench {

std::string openblasCore() { return openblas_get_corename(); }

void useVectorsInOpenblas(const std::vector<std::string>& peers) {
  if (std::find(peers.begin(), peers.end(), "openblas") == peers.end()) return;
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  const std::string core = openblasCore();
  const char* const isa = taccComputeIsa();
  if (isa == nullptr || std::getenv(variable) != nullptr) return;
  const std::string_view wider = widerCore(core, isa);
  if (wider.empty()) return;
  setenv(variable, std::string(wider).c_str(), 1);
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
