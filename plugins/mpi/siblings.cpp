#include "siblings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace tacc::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> rankVariables{"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="};
constexpr std::string_view pluginName = "libtacc_mpi", mpiName = "/libmpi";  // libmpich.so, libmpi.so

struct Sibling {
  int rank;
  bool hasPlugin;
};

/// Empty where it cannot be read.
std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::optional<int> numberIn(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

/// The parent's number stands after the program's name in brackets, which may hold anything, and a letter.
std::optional<int> parentIn(std::string_view stat) {
  const std::size_t name = stat.rfind(')');
  if (name == std::string_view::npos || name + 4 > stat.size()) return std::nullopt;
  return numberIn(stat.substr(name + 4));
}

std::optional<int> rankIn(std::string_view environment) {
  for (std::size_t begin = 0; begin < environment.size();) {
    const std::size_t end = std::min(environment.find('\0', begin), environment.size());
    const std::string_view variable = environment.substr(begin, end - begin);
    for (const std::string_view name : rankVariables)
      if (variable.starts_with(name)) return numberIn(variable.substr(name.size()));
    begin = end + 1;
  }
  return std::nullopt;
}

std::vector<Sibling> findSiblings() {
  std::vector<Sibling> siblings;
  std::error_code error;
  const int parent = ::getppid();
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& folder = entry->path();
    if (!numberIn(folder.filename().native()) || parentIn(contents(folder / "stat")) != parent) continue;
    const std::optional<int> rank = rankIn(contents(folder / "environ"));
    const std::string maps = contents(folder / "maps");
    // A script that will start a rank is none, and what cannot be read says nothing.
    if (rank && maps.find(mpiName) != std::string::npos)
      siblings.push_back({*rank, maps.find(pluginName) != std::string::npos});
  }
  std::ranges::sort(siblings, {}, &Sibling::rank);
  return siblings;
}

}  // namespace

std::string ranksWithoutPlugin() {
  std::string ranks;
  for (const Sibling& sibling : findSiblings())
    if (!sibling.hasPlugin) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(sibling.rank);
  return ranks;
}

bool isFirstWithPlugin() {
  const std::vector<Sibling> siblings = findSiblings();
  const auto first = std::ranges::find(siblings, true, &Sibling::hasPlugin);
  return first == siblings.end() || first->rank == rankIn(contents("/proc/self/environ"));
}

}  // namespace tacc::mpi
