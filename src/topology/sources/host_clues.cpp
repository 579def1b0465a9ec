#include "topology/sources/host_clues.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"
#include "topology/sources/hwloc_node.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostCards = 64;
constexpr double megabit = 1e6 / 8;  // bytes
/// The kernel tells the speed of a link in Mbit/s, and a number below 0 where it does not know it.
double bytesOfMegabits(std::string_view text) {
  return static_cast<double>(parseInteger(text, 1, 1'000'000'000).value_or(0)) * megabit;
}

std::string firstWord(const std::optional<std::string>& text) {
  if (!text) return "";
  const std::size_t begin = std::min(text->find_first_not_of(" \t\r\n"), text->size());
  return text->substr(begin, std::min(text->find_first_of(" \t\r\n", begin), text->size()) - begin);
}

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// Slingshot cards are the interfaces hsn0, hsn1, ...
std::vector<SlingshotCard> slingshotCards(const std::string& root) {
  std::vector<std::string> names;
  // Not a directory_iterator: the standard library's ends the process where there is no memory for an entry.
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir((root + "/sys/class/net").c_str()));
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("hsn") && names.size() < mostCards) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end(), naturallyLess);
  std::vector<SlingshotCard> cards;
  for (const std::string& name : names) {
    const std::string mac = firstWord(readTextIfThere(root + "/sys/class/net/" + name + "/address"));
    if (mac.empty()) continue;
    cards.push_back({mac, bytesOfMegabits(firstWord(readTextIfThere(root + "/sys/class/net/" + name + "/speed")))});
  }
  return cards;
}

InnerLevel innerOf(std::string_view kind, std::string_view bytes) {
  for (const LevelKind inner : {LevelKind::cache, LevelKind::numa, LevelKind::die, LevelKind::socket}) {
    if (nameOf(inner) == kind) return {inner, bytes == "-" ? 0 : parseBytes(bytes).value_or(0)};
  }
  fail(taccInvalidArgument, "clues of a host: \"{}\" is no level inside a host", shownText(kind));
}

/// "02:00:00:00:00:01 200000", or the address alone.
SlingshotCard cardFrom(std::string_view value) {
  const std::vector<std::string_view> words = wordsOf(value);
  if (words.empty() || words.size() > 2)
    fail(taccInvalidArgument, "clues of a host: \"{}\" is no card's address and speed", shownText(value));
  return {std::string(words[0]), words.size() == 2 ? bytesOfMegabits(words[1]) : 0};
}

/// "kind sizes bytes".
void readInner(std::string_view value, NodeDescription& node) {
  const std::size_t first = std::min(value.find(' '), value.size());
  const std::size_t second = std::min(value.find(' ', first + 1), value.size());
  if (second == value.size()) fail(taccInvalidArgument, "clues of a host: \"{}\" is no level", shownText(value));
  const std::string_view sizes = value.substr(first + 1, second - first - 1);
  if (node.levels.size() >= 8 || !node.nesting.add(parseSizes(sizes, node.nesting.leaves(), "clues of a host"))) {
    fail(taccInvalidArgument, "clues of a host: the level \"{}\" does not fit", shownText(value));
  }
  node.levels.push_back(innerOf(value.substr(0, first), value.substr(second + 1)));
}

}  // namespace

Surroundings Surroundings::here() {
  return {"", [](const std::string& name) {
            const char* value = std::getenv(name.c_str());
            return std::string(value == nullptr ? "" : value);
          }};
}

HostClues gatherClues(const Surroundings& surroundings, bool withNode) {
  HostClues clues;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) failErrno("the name of this host cannot be read");
  clues.host = name.data();
  clues.cname = firstWord(readTextIfThere(surroundings.root + "/proc/cray_xt/cname"));
  clues.xname = firstWord(readTextIfThere(surroundings.root + "/etc/cray/xname"));
  clues.cards = slingshotCards(surroundings.root);
  clues.slurmAddress = surroundings.variable("SLURM_TOPOLOGY_ADDR");
  clues.slurmPattern = surroundings.variable("SLURM_TOPOLOGY_ADDR_PATTERN");
  clues.slurmPartition = surroundings.variable("SLURM_JOB_PARTITION");
  if (withNode && hasHwloc()) clues.node = nodeHere();
  return clues;
}

std::string cluesToText(const HostClues& clues) {
  std::string text;
  const auto line = [&text](std::string_view key, std::string_view value) {
    if (!value.empty()) text += fmt::format("{} {}\n", key, value);
  };
  line("host", clues.host);
  line("cname", clues.cname);
  line("xname", clues.xname);
  for (const SlingshotCard& card : clues.cards)
    line("card",
         card.bytesPerSecond > 0 ? fmt::format("{} {:.0f}", card.mac, card.bytesPerSecond / megabit) : card.mac);
  line("slurm-address", clues.slurmAddress);
  line("slurm-pattern", clues.slurmPattern);
  line("slurm-partition", clues.slurmPartition);
  if (clues.node) {
    line("cpus", formatCpus(clues.node->cores));
    for (std::size_t i = 0; i < clues.node->levels.size(); ++i) {
      const InnerLevel& level = clues.node->levels[i];
      line("inner",
           fmt::format("{} {} {}", nameOf(level.kind), formatSizes(clues.node->nesting, static_cast<int>(i) + 1),
                       level.bytes > 0 ? formatBytes(level.bytes) : "-"));
    }
  }
  return text;
}

HostClues cluesFromText(std::string_view text) {
  HostClues clues;
  for (const std::string_view line : linesOf(text)) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view key = line.substr(0, space);
    const std::string_view value = line.substr(std::min(space + 1, line.size()));
    if (key == "host")
      clues.host = value;
    else if (key == "cname")
      clues.cname = value;
    else if (key == "xname")
      clues.xname = value;
    else if (key == "card" && clues.cards.size() < mostCards)
      clues.cards.push_back(cardFrom(value));
    else if (key == "slurm-address")
      clues.slurmAddress = value;
    else if (key == "slurm-pattern")
      clues.slurmPattern = value;
    else if (key == "slurm-partition")
      clues.slurmPartition = value;
    else if (key == "cpus") {
      clues.node.emplace();
      clues.node->cores = parseCpus(value, "clues of a host");
      clues.node->nesting = Nesting(static_cast<std::uint32_t>(clues.node->cores.size()));
    } else if (key == "inner" && clues.node)
      readInner(value, *clues.node);
    else if (!line.empty())
      fail(taccInvalidArgument, "clues of a host: unknown line \"{}\"", shownText(line));
  }
  if (clues.host.empty()) fail(taccInvalidArgument, "clues of a host lack its name");
  return clues;
}

}  // namespace tacc
