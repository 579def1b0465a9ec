#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"

namespace tacc {
namespace {

void check(const std::vector<SlurmGrid>& grids, std::string_view kind) {
  std::unordered_map<std::string_view, const SlurmGrid*> names, hosts;
  for (const SlurmGrid& grid : grids) {
    if (const auto [other, isNew] = names.try_emplace(grid.name, &grid); !isNew) {
      fail(taccInvalidArgument, "{}: the {} {} stands in {} already", grid.where, kind, shownText(grid.name),
           other->second->where);
    }
    for (const std::string& host : grid.hosts) {
      if (host.empty()) continue;
      if (const auto [other, isNew] = hosts.try_emplace(host, &grid); !isNew) {
        fail(taccInvalidArgument, "{}: the host {} is in the {} {} already ({})", grid.where, host, kind,
             shownText(other->second->name), other->second->where);
      }
    }
  }
}

void keepThoseOf(std::span<const std::string> wanted, std::vector<SlurmGrid>& grids) {
  std::unordered_set<std::string_view> names;  // whole, and without the domain
  for (const std::string_view name : wanted) {
    names.insert(name);
    names.insert(name.substr(0, name.find('.')));
  }
  const auto isWanted = [&](const std::string& host) { return names.contains(host); };
  std::vector<SlurmGrid> kept;
  for (SlurmGrid& grid : grids)
    if (std::ranges::any_of(grid.hosts, isWanted)) kept.push_back(std::move(grid));
  if (!kept.empty()) grids = std::move(kept);  // else none of them helps, and the caller says what is missing
}

/// As a level has them: the last varies fastest. One place in a direction is no direction.
std::vector<std::uint32_t> dimensionsOf(const SlurmGrid& grid) {
  std::vector<std::uint32_t> dimensions(grid.extents.rbegin(), grid.extents.rend());
  std::erase(dimensions, 1u);
  return dimensions;
}

void wire(Level& level, const std::vector<std::uint32_t>& dimensions) {
  if (dimensions.empty()) return;
  level.wiring = Wiring::torus;
  level.dimensions = dimensions;
  level.links = 1;
}

}  // namespace

Topology topologyOfGrids(std::vector<SlurmGrid> grids, std::string_view kind, const std::string& origin,
                         std::span<const std::string> wanted) {
  check(grids, kind);
  if (!wanted.empty()) keepThoseOf(wanted, grids);
  // No host stands at each place of a torus, so one is made up there and left out again: what is then still a whole box
  // stays a torus.
  const bool areAlike = std::ranges::all_of(
      grids, [&](const SlurmGrid& grid) { return dimensionsOf(grid) == dimensionsOf(grids.front()); });
  TopologyDraft draft;
  LevelDraft level;
  std::vector<std::string> real;
  for (const SlurmGrid& grid : grids) {
    for (const std::string& host : grid.hosts) {
      if (!host.empty()) real.push_back(host);
      if (host.empty() && !areAlike) continue;
      draft.hosts.push_back(host.empty() ? fmt::format("?{}", draft.hosts.size()) : host);
      level.groupOf.push_back(grid.name);
    }
  }
  if (real.empty()) fail(taccInvalidArgument, "{}: no {} has hosts", origin, kind);
  const bool hasHoles = real.size() < draft.hosts.size();
  if (grids.size() == 1) {
    draft.root.name = grids.front().name;
    wire(draft.root, dimensionsOf(grids.front()));
  } else {
    level.level.name = kind;
    if (areAlike) wire(level.level, dimensionsOf(grids.front()));
    draft.levels.push_back(std::move(level));
  }
  try {
    Topology whole = build(std::move(draft));
    return hasHoles ? whole.only(real) : whole;
  } catch (const Error& error) {
    fail(error.result(), "{}: {}", origin, error.what());
  }
}

}  // namespace tacc
