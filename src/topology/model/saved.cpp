#include "topology/model/saved.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "topology/model/digest.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostFiles = 256;
constexpr std::string_view ending = ".toml";

/// Of the names of a transport's files. A transport of the program's own may be called anything.
std::string beginningFor(std::string_view transport) {
  std::string name(transport);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return "topology-" + name + '-';
}

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// With all folders above it.
void makeFolder(const std::string& path) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) failErrno("the folder {} cannot be made", part);
    if (at == std::string::npos) return;
  }
}

/// Makes its folder. The name of what is written first and then renamed.
std::string prepareFor(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) makeFolder(path.substr(0, slash));
  return fmt::format("{}.{}.part", path, ::getpid());
}

}  // namespace

std::string folderOfSaved(const Surroundings& here) {
  const std::string cache = here.variable("XDG_CACHE_HOME"), home = here.variable("HOME");
  if (!cache.empty()) return here.root + cache + "/tacc";
  return home.empty() ? "" : here.root + home + "/.cache/tacc";
}

std::string pathOfSaved(const Surroundings& here, std::string_view transport, std::vector<std::string> hosts) {
  const std::string folder = folderOfSaved(here);
  if (folder.empty()) {
    fail(taccInvalidUsage,
         "neither XDG_CACHE_HOME nor HOME is set, so there is no folder for what was measured; name a file for it");
  }
  std::ranges::sort(hosts);
  Digest digest;
  for (const std::string& host : hosts) digest.add(host);
  return fmt::format("{}/{}{:016x}{}", folder, beginningFor(transport), digest.value(), ending);
}

std::vector<std::string> savedFiles(const Surroundings& here, std::string_view transport) {
  struct File {
    std::int64_t seconds, nanoseconds;
    std::string path;
  };
  std::vector<File> files;
  const std::string path = folderOfSaved(here), beginning = beginningFor(transport);
  const std::unique_ptr<DIR, CloseFolder> folder(path.empty() ? nullptr : ::opendir(path.c_str()));
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    const std::string file = fmt::format("{}/{}", path, name);
    struct stat status {};
    if (!name.starts_with(beginning) || !name.ends_with(ending) || ::stat(file.c_str(), &status) != 0) continue;
    files.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec, file});
  }
  std::ranges::sort(files, [](const File& a, const File& b) {
    return std::tie(b.seconds, b.nanoseconds, a.path) < std::tie(a.seconds, a.nanoseconds, b.path);
  });
  files.resize(std::min(files.size(), mostFiles));
  std::vector<std::string> paths;
  for (File& file : files) paths.push_back(std::move(file.path));
  return paths;
}

void requireSavable(const std::string& path) {
  const std::string part = prepareFor(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    fail(taccSystemError, "{} cannot be written: it is a folder", path);
  if (!std::ofstream(part)) failErrno("{} cannot be written", path);
  std::remove(part.c_str());
}

void saveTopology(const std::string& path, const Topology& topology, std::string_view remark) {
  const std::string part = prepareFor(path);
  std::ofstream file(part, std::ios::binary);
  file << "# " << remark << '\n' << topologyToToml(topology);
  file.close();
  if (file && std::rename(part.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(part.c_str());
  errno = error;
  failErrno("{} cannot be written", path);
}

}  // namespace tacc
