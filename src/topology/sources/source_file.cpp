// The source "file": a TOML file that people write.
#include <cctype>

#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/sources.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

/// The first line that says something is a table, the hosts, or a key with a text.
bool recognisesToml(std::string_view text) {
  for (const std::string_view line : linesOf(text.substr(0, 64 * 1024))) {
    const std::vector<std::string_view> words = wordsOf(line);
    if (words.empty() || words.front().starts_with('#')) continue;
    const std::string_view first = words.front();
    if (first.starts_with('[') || first == "hosts" || first.starts_with("hosts=")) return true;
    return line.find('=') != std::string_view::npos && std::isalpha(static_cast<unsigned char>(first.front())) != 0 &&
           line.find('"') != std::string_view::npos;
  }
  return false;
}

Topology readTomlFile(std::string_view text, const std::string& origin) { return topologyFromToml(text, origin); }

std::optional<Finding> lookForTomlFile(const SourceContext& context) {
  const Surroundings& here = context.surroundings;
  const std::string home = here.variable("HOME"), config = here.variable("XDG_CONFIG_HOME");
  std::vector<std::string> paths;
  if (!config.empty())
    paths.push_back(here.root + config + "/tacc/topology.toml");
  else if (!home.empty())
    paths.push_back(here.root + home + "/.config/tacc/topology.toml");
  paths.push_back(here.root + "/etc/tacc/topology.toml");
  for (const std::string& path : paths) {
    if (const auto text = readTextIfThere(path)) return Finding{"file", path, topologyFromToml(*text, path)};
  }
  return std::nullopt;
}

}  // namespace

TopologySource fileSource() {
  return {.name = {},
          .summary = "a TOML file: TACC_TOPO_FILE, ~/.config/tacc/topology.toml or /etc/tacc/topology.toml",
          .library = "",
          .recognises = recognisesToml,
          .read = readTomlFile,
          .look = lookForTomlFile};
}

}  // namespace tacc
