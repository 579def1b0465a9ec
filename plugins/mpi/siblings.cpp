#include "siblings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "presence.hpp"

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

/// The processes that another one has started, in any of its threads. Nothing where the kernel does not tell, or where
/// they changed meanwhile, so that this one is missing.
std::optional<std::vector<int>> childrenOf(int process) {
  std::vector<int> children;
  std::error_code error;
  for (fs::directory_iterator thread("/proc/" + std::to_string(process) + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    std::istringstream numbers(contents(thread->path() / "children"));
    std::copy(std::istream_iterator<int>(numbers), {}, std::back_inserter(children));
  }
  if (error || std::ranges::find(children, ::getpid()) == children.end()) return std::nullopt;
  return children;
}

/// The same by a look at every process.
std::vector<int> searchChildrenOf(int process) {
  std::vector<int> children;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::optional<int> number = numberIn(entry->path().filename().native());
    if (number && parentIn(contents(entry->path() / "stat")) == process) children.push_back(*number);
  }
  return children;
}

/// By rank. `withPresent`: also those that show themselves.
std::vector<Sibling> findSiblings(bool withPresent) {
  std::vector<Sibling> siblings;
  // While a child ends the kernel may leave out another.
  std::optional<std::vector<int>> children = childrenOf(::getppid());
  if (!children || childrenOf(::getppid()) != children) children = searchChildrenOf(::getppid());
  for (const int child : *children) {
    const bool shows = isPresent(child);
    if (shows && !withPresent) continue;
    const fs::path folder = "/proc/" + std::to_string(child);
    const std::optional<int> rank = rankIn(contents(folder / "environ"));
    if (!rank) continue;
    const std::string maps = shows ? "" : contents(folder / "maps");
    // A script that will start a rank is none, and what cannot be read says nothing.
    if (shows || maps.find(mpiName) != std::string::npos)
      siblings.push_back({*rank, shows || maps.find(pluginName) != std::string::npos});
  }
  std::ranges::sort(siblings, {}, &Sibling::rank);
  return siblings;
}

}  // namespace

std::string ranksWithoutPlugin() {
  std::string ranks;
  for (const Sibling& sibling : findSiblings(false))
    if (!sibling.hasPlugin) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(sibling.rank);
  return ranks;
}

bool isFirstWithPlugin() {
  const std::vector<Sibling> siblings = findSiblings(true);
  const auto first = std::ranges::find(siblings, true, &Sibling::hasPlugin);
  return first == siblings.end() || first->rank == rankIn(contents("/proc/thread-self/environ"));
}

}  // namespace tacc::mpi
