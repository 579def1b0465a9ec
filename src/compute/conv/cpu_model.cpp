#include <algorithm>
#include <cstring>
#include <fstream>

#include "compute/conv/tuning.hpp"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tacc::conv {
namespace {

#if defined(__x86_64__)

/// The brand string, which the firmware pads with spaces.
std::string readModel() {
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* const at = words + 4 * i;
    if (__get_cpuid(0x80000002 + i, at, at + 1, at + 2, at + 3) == 0) return "unknown x86_64";
  }
  char text[sizeof(words) + 1] = {};
  std::memcpy(text, words, sizeof(words));
  std::string model = text;
  model.erase(0, std::min(model.size(), model.find_first_not_of(' ')));
  model.erase(model.find_last_not_of(' ') + 1);
  return model;
}

#else

/// Implementer and part of the first core: Linux has no name for it.
std::string readModel() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model;
  while (std::getline(file, line) && !line.empty()) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    for (const char* key : {"CPU implementer", "CPU part"}) {
      if (line.starts_with(key)) model += (model.empty() ? "" : " ") + line.substr(colon + 2);
    }
  }
  return model.empty() ? "unknown CPU" : model;
}

#endif

}  // namespace

const std::string& cpuModel() {
  static const std::string model = readModel();
  return model;
}

}  // namespace tacc::conv
