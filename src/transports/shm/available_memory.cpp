#include "transports/shm/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace tacc {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// The number a file holds; nothing if it cannot be read or is no number ("max").
std::optional<std::size_t> readNumber(const std::string& path) {
  std::ifstream file(path);
  std::size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The number after the line's first word `key` in a file of "key value" lines; 0 if it is not there.
std::size_t readKey(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    std::size_t value = 0;
    if (words >> word >> value && word == key) return value;
  }
  return 0;
}

std::size_t machineAvailable(const std::string& path) {
  const std::size_t kib = readKey(path, "MemAvailable:");
  if (kib == 0) return unlimited;
  return (kib + readKey(path, "SwapFree:")) * 1024;
}

/// What one control group leaves. Its clean file pages can be dropped, so they count as free.
std::size_t groupAvailable(const std::string& folder, const char* limitFile, const char* usageFile,
                           const char* cacheKey) {
  const std::optional<std::size_t> limit = readNumber(folder + limitFile);
  const std::optional<std::size_t> used = readNumber(folder + usageFile);
  if (!limit || !used) return unlimited;
  const std::size_t cache = readKey(folder + "/memory.stat", cacheKey);
  const std::size_t fixed = *used - std::min(*used, cache);
  return *limit - std::min(*limit, fixed);
}

/// The least that the group at `path` under the mount point and the groups around it leave.
std::size_t pathAvailable(const std::string& mount, std::string path, const char* limitFile, const char* usageFile,
                          const char* cacheKey) {
  std::size_t least = unlimited;
  for (;;) {
    least = std::min(least, groupAvailable(mount + path, limitFile, usageFile, cacheKey));
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.resize(slash);
  }
}

}  // namespace

std::size_t availableMemory(const std::string& root) {
  std::size_t least = machineAvailable(root + "/proc/meminfo");
  // Lines are "number:controllers:path"; version 2 is number 0 without controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least,
                       pathAvailable(root + "/sys/fs/cgroup", path, "/memory.max", "/memory.current", "inactive_file"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, pathAvailable(root + "/sys/fs/cgroup/memory", path, "/memory.limit_in_bytes",
                                            "/memory.usage_in_bytes", "total_inactive_file"));
    }
  }
  return least;
}

}  // namespace tacc
