// The source "slurm".
#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/slurm_lines.hpp"
#include "topology/sources/sources.hpp"
#include "topology/sources/yaml_text.hpp"

namespace tacc {
namespace {

constexpr std::size_t looked = std::size_t{64} << 10;  // bytes at the beginning of a file

/// By its first key: "- topology: a", "topology: a", "[{"topology": "a"", whichever key of an entry comes first.
bool looksLikeYaml(std::string_view text) {
  constexpr std::array<std::string_view, 7> keys = {"topology", "cluster_default", "tree", "block", "flat",
                                                    "ring",     "torus3d"};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : linesOf(text.substr(0, looked))) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with('#') || line.starts_with("---") || line.starts_with('%')) continue;
    line.remove_prefix(std::min(line.find_first_not_of("-[{ \t"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const bool isQuoted = line.starts_with('"') || line.starts_with('\'');
    const char quote = isQuoted ? line.front() : ':';
    if (isQuoted) line.remove_prefix(1);
    std::string_view key = line.substr(0, line.find(quote));
    std::string_view rest = line.substr(std::min(key.size() + (isQuoted ? 1 : 0), line.size()));
    while (key.ends_with(' ')) key.remove_suffix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest.starts_with(':') && std::ranges::find(keys, key) != keys.end();
  }
  return false;
}

/// "SwitchName=a", "switchname = a"; or no more than Include lines and comments.
bool looksLikeConf(std::string_view text) {
  constexpr std::array<std::string_view, 6> keys = {"SwitchName",      "BlockName", "BlockSizes",
                                                    "AggregatedBlock", "RingName",  "TorusName"};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  bool includes = false, says = false;
  for (const std::string_view line : linesOf(text.substr(0, looked))) {
    const std::vector<std::string_view> words = wordsOf(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const std::string_view key = words.front().substr(0, words.front().find('='));
    const bool isPair = key.size() < words.front().size() || (words.size() > 1 && words[1].starts_with('='));
    if (isPair && std::ranges::any_of(keys, [&](std::string_view one) { return sameIgnoringCase(one, key); }))
      return true;
    (words.size() == 2 && sameIgnoringCase(key, "include") ? includes : says) = true;
  }
  return includes && !says;
}

Topology readFile(std::string_view text, const std::string& origin, const SlurmSite& site) {
  return looksLikeYaml(text) ? topologyFromSlurmYaml(text, origin, site) : topologyFromSlurmConf(text, origin, site);
}

/// The partition that all hosts name; one job may have several.
std::string partitionOf(const std::vector<HostClues>& hosts) {
  std::string partition;
  for (const HostClues& host : hosts) {
    if (host.slurmPartition.empty() || host.slurmPartition == partition) continue;
    if (!partition.empty()) return "";
    partition = host.slurmPartition;
  }
  return partition;
}

std::optional<Finding> lookForFiles(const SourceContext& context) {
  SlurmSite site = SlurmSite::in(context.surroundings);
  site.partition = partitionOf(context.hosts);
  for (const HostClues& host : context.hosts) site.hosts.push_back(host.host);
  std::vector<std::string> folders;
  if (site.conf.find('/') != std::string::npos) folders.push_back(folderOf(site.conf));
  for (const char* folder : {"/etc/slurm/", "/run/slurm/conf/", "/etc/slurm-llnl/"}) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    for (const char* name : {"topology.yaml", "topology.conf"}) {
      const std::string path = site.root + folder + name;
      const auto text = readTextIfThere(path);
      if (!text) continue;
      Topology topology = readFile(*text, path, site);
      if (topology.hosts() == 0) return std::nullopt;
      return Finding{"slurm", path, withNamesOfHosts(std::move(topology), context.hosts)};
    }
  }
  return std::nullopt;
}

bool knowsAll(const Topology& topology, const std::vector<HostClues>& hosts) {
  return std::ranges::all_of(hosts, [&](const HostClues& host) { return topology.findHost(host.host).has_value(); });
}

bool recognisesSlurm(std::string_view text) { return looksLikeConf(text) || looksLikeYaml(text); }

Topology readSlurmFile(std::string_view text, const std::string& origin) {
  return readFile(text, origin, SlurmSite::in(Surroundings::here()));
}

/// Slurm itself prefers topology.yaml; both lie beside slurm.conf. A job without the files has its address, and so has
/// one whose files do not serve it.
std::optional<Finding> lookForSlurm(const SourceContext& context) {
  const bool haveAddresses = context.hosts.size() > 1 && std::ranges::none_of(context.hosts, [](const HostClues& host) {
                               return host.slurmAddress.empty();
                             });
  std::optional<Finding> found;
  std::string trouble;
  try {
    found = lookForFiles(context);
    if (found && (!haveAddresses || knowsAll(found->topology, context.hosts))) return found;
    if (found) trouble = found->origin + ", which lacks hosts of the job";
  } catch (const Error& error) {
    if (!haveAddresses) throw;
    trouble = error.what();
  }
  Topology topology = topologyFromSlurmAddresses(context.hosts);
  if (topology.hosts() == 0 && !trouble.empty() && !found) fail(taccInvalidArgument, "{}", trouble);
  if (topology.hosts() == 0) return found;
  return Finding{"slurm", trouble.empty() ? "SLURM_TOPOLOGY_ADDR" : "SLURM_TOPOLOGY_ADDR, not " + trouble,
                 std::move(topology)};
}

}  // namespace

TopologySource slurmSource() {
  return {
      .name = {},
      .summary =
          "topology.yaml and topology.conf of Slurm, what scontrol show topology prints, SLURM_TOPOLOGY_ADDR of a job",
      .library = hasYaml() ? "" : "libyaml-dev",
      .recognises = recognisesSlurm,
      .read = readSlurmFile,
      .look = lookForSlurm};
}

}  // namespace tacc
