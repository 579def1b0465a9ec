// The source "sunway": Sunway TaihuLight, where 256 nodes are a supernode and a node's name is its number (vn000123). A
// file of it is a list of hosts.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/sources.hpp"

namespace tacc {
namespace {

constexpr std::uint64_t nodesOfSupernode = 256;

/// Whether a name is "vn" and digits.
bool isSunwayHost(std::string_view name) noexcept {
  return name.size() >= 3 && name.size() <= 12 && name.starts_with("vn") &&
         std::all_of(name.begin() + 2, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Groups hosts by number / 256. Empty unless all are Sunway hosts.
Topology topologyFromSunwayHosts(std::span<const std::string> hosts) {
  TopologyDraft draft;
  LevelDraft level;
  level.level.name = "supernode";
  for (const std::string& host : hosts) {
    if (!isSunwayHost(host)) return {};
    draft.hosts.push_back(host);
    level.groupOf.push_back(std::to_string(numberIn(host).value_or(0) / nodesOfSupernode));
  }
  if (draft.hosts.empty()) return {};
  draft.levels.push_back(std::move(level));
  draft.root.name = "central switches";
  return build(std::move(draft));
}

bool recognisesSunway(std::string_view text) {
  const std::vector<std::string_view> words = wordsOf(text.substr(0, text.find('\n')));
  return words.size() == 1 && (isSunwayHost(words[0]) || words[0].starts_with("vn["));
}

Topology readSunwayFile(std::string_view text, const std::string& origin) {
  std::vector<std::string> hosts;
  std::size_t number = 0;
  for (const std::string_view line : linesOf(text)) {
    ++number;
    if (wordsOf(line).empty()) continue;
    try {
      for (std::string& host : expandHosts(line, mostHosts - hosts.size())) hosts.push_back(std::move(host));
    } catch (const Error& error) {
      fail(error.result(), "{}:{}: {}", origin, number, error.what());
    }
  }
  Topology topology = topologyFromSunwayHosts(hosts);
  if (topology.hosts() == 0) fail(taccInvalidArgument, "{}: not all hosts are called like vn000123", origin);
  return topology;
}

std::optional<Finding> lookForSunway(const SourceContext& context) {
  std::vector<std::string> hosts;
  for (const HostClues& host : context.hosts) hosts.push_back(host.host);
  Topology topology = topologyFromSunwayHosts(hosts);
  if (topology.hosts() == 0) return std::nullopt;
  return Finding{"sunway", "host names", std::move(topology)};
}

}  // namespace

TopologySource sunwaySource() {
  return {.name = {},
          .summary = "host names of Sunway TaihuLight: vn000123 is in supernode 123 / 256",
          .library = "",
          .recognises = recognisesSunway,
          .read = readSunwayFile,
          .look = lookForSunway};
}

}  // namespace tacc
