#include "topology/cores.hpp"

#include <unistd.h>

#include <algorithm>

namespace tacc {

cpu_set_t allowedCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

int countCores(std::span<const cpu_set_t> sets) {
  cpu_set_t together;
  CPU_ZERO(&together);
  for (const cpu_set_t& one : sets) CPU_OR(&together, &together, &one);
  return std::max(1, CPU_COUNT(&together));
}

std::size_t ownCacheBytes() {
  static const long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return reported > 0 ? static_cast<std::size_t>(reported) : std::size_t{1} << 20;
}

}  // namespace tacc
