// The source "slurm".
#include <algorithm>
#include <cctype>

#include "topology/slurm.hpp"
#include "topology/sources.hpp"
#include "topology/text_file.hpp"

namespace tacc {
namespace {

bool looksLikeYaml(std::string_view text) {
  for (const std::string_view line : linesOf(text.substr(0, 64 * 1024))) {
    const std::vector<std::string_view> words = wordsOf(line);
    if (words.empty() || words.front().starts_with('#') || words.front() == "---") continue;
    return words.size() > 1 && words[0] == "-" && words[1] == "topology:";
  }
  return false;
}

}  // namespace

bool recognisesSlurm(std::string_view text) {
  for (const std::string_view line : linesOf(text.substr(0, 64 * 1024))) {
    const std::vector<std::string_view> words = wordsOf(line);
    if (words.empty()) continue;
    std::string key(words.front().substr(0, words.front().find('=')));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (words.front().find('=') != std::string_view::npos &&
        (key == "switchname" || key == "blockname" || key == "blocksizes")) {
      return true;
    }
  }
  return looksLikeYaml(text);
}

Topology readSlurmFile(std::string_view text, const std::string& origin) {
  return looksLikeYaml(text) ? topologyFromSlurmYaml(text, origin) : topologyFromSlurmConf(text, origin);
}

/// Slurm itself prefers topology.yaml; both lie beside slurm.conf. A job without the files has its address.
std::optional<Finding> lookForSlurm(const SourceContext& context) {
  std::vector<std::string> folders;
  if (const std::string conf = context.surroundings.variable("SLURM_CONF"); conf.find('/') != std::string::npos) {
    folders.push_back(conf.substr(0, conf.rfind('/')));
  }
  for (const char* folder : {"/etc/slurm", "/run/slurm/conf", "/etc/slurm-llnl"}) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    for (const char* name : {"/topology.yaml", "/topology.conf"}) {
      const std::string path = context.surroundings.root + folder + name;
      if (const auto text = readTextIfThere(path)) return Finding{"slurm", path, readSlurmFile(*text, path)};
    }
  }
  Topology topology = topologyFromSlurmAddresses(context.hosts);
  if (topology.hosts() == 0) return std::nullopt;
  return Finding{"slurm", "SLURM_TOPOLOGY_ADDR", std::move(topology)};
}

}  // namespace tacc
