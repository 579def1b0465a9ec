#include "topology/model/cores.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

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

int numaDomainOf(const cpu_set_t& cores) {
  std::error_code unknown;
  int least = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", unknown)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("node") || name.size() == 4 || name.find_first_not_of("0123456789", 4) != std::string::npos)
      continue;
    const int domain = std::stoi(name.substr(4));
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &cores) || !std::filesystem::exists(entry.path() / fmt::format("cpu{}", core), unknown))
        continue;
      if (least < 0 || domain < least) least = domain;
      break;
    }
  }
  return std::max(0, least);
}

std::size_t ownCacheBytes() {
  static const long reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return reported > 0 ? static_cast<std::size_t>(reported) : std::size_t{1} << 20;
}

}  // namespace tacc
