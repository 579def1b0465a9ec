#include "json.hpp"

#include <nlohmann/json.hpp>
#include <optional>

namespace tacc {
namespace {

using Json = nlohmann::ordered_json;

Json figure(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json groupsOf(const Topology& topology, int level) {
  Json groups = Json::array();
  for (std::uint32_t g = 0; g < topology.groups(level); ++g) {
    Json hosts = Json::array();
    const LeafRange range = topology.hostsOf(level, g);
    for (std::uint32_t h = range.first; h < range.last; ++h) hosts.push_back(topology.host(h));
    const std::optional<double> uplink = level == topology.root() ? std::nullopt : topology.uplink(level, g);
    groups.push_back({{"name", topology.groupName(level, g)}, {"uplink", figure(uplink)}, {"hosts", std::move(hosts)}});
  }
  return groups;
}

}  // namespace

std::string topologyToJson(const Topology& topology) {
  Json hosts = Json::array(), levels = Json::array();
  for (std::uint32_t h = 0; h < topology.hosts(); ++h)
    hosts.push_back({{"name", topology.host(h)}, {"uplink", figure(topology.uplink(0, h))}});
  for (int l = 1; l < topology.levels(); ++l) {
    const Level& level = topology.level(l);
    levels.push_back({{"name", level.name},
                      {"kind", nameOf(level.kind)},
                      {"latency", figure(level.alpha)},
                      {"bandwidth", figure(level.bandwidth)},
                      {"rails", level.rails},
                      {"wiring", nameOf(level.wiring)},
                      {"dimensions", level.dimensions},
                      {"links", level.links},
                      {"link", figure(level.linkBandwidth)},
                      {"groups", groupsOf(topology, l)}});
  }
  const Json whole = {{"name", topology.name()},
                      {"rails", topology.level(0).rails},
                      {"hosts", std::move(hosts)},
                      {"levels", std::move(levels)}};
  return whole.dump(1) + '\n';
}

}  // namespace tacc
