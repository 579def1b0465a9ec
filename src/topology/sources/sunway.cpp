#include "topology/sources/sunway.hpp"

#include <algorithm>

#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"

namespace tacc {

bool isSunwayHost(std::string_view name) noexcept {
  return name.size() >= 3 && name.size() <= 12 && name.starts_with("vn") &&
         std::all_of(name.begin() + 2, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

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

}  // namespace tacc
