// Which cards are in one host.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "topology/sources/fabric_plugs.hpp"

namespace tacc {
namespace {

/// Of cards without a host's name: from the system they are in, or else from their own id.
std::string nameOfUnnamed(const Fabric::Device& card) {
  std::string_view known = card.system.empty() ? std::string_view(card.id) : std::string_view(card.system);
  if (known.starts_with("0x")) known.remove_prefix(2);
  if (known.starts_with("H-")) known.remove_prefix(2);
  return "unnamed-" + std::string(known);
}

/// The host of each card, in the order of devices; "" for what is no card.
std::vector<std::string> hostNames(const Fabric& fabric) {
  constexpr std::string_view several = "";
  std::map<std::string_view, std::string_view> nameOf;  // by system
  for (const Fabric::Device& device : fabric.devices) {
    if (device.kind != Fabric::Kind::card || device.name.empty() || device.system.empty()) continue;
    const auto [entry, isNew] = nameOf.try_emplace(device.system, device.name);
    // A card may be shared by several hosts, whose names then differ.
    if (!isNew && entry->second != device.name) entry->second = several;
  }
  std::vector<std::string> names;
  names.reserve(fabric.devices.size());
  for (const Fabric::Device& device : fabric.devices) {
    std::string& name = names.emplace_back();
    if (device.kind != Fabric::Kind::card) continue;
    name = device.name;
    if (!name.empty()) continue;
    const auto known = nameOf.find(device.system);
    if (known != nameOf.end()) name = known->second;
    if (name.empty()) name = nameOfUnnamed(device);
  }
  return names;
}

}  // namespace

std::vector<PluggedHost> hostsOf(const Fabric& fabric) {
  const std::vector<std::string> names = hostNames(fabric);
  std::vector<PluggedHost> hosts;
  std::map<std::string_view, std::size_t> hostOf;
  for (const Fabric::Cable& cable : fabric.cables) {
    for (const auto& [at, other] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      if (fabric.devices[at].kind != Fabric::Kind::card || fabric.devices[other].kind != Fabric::Kind::switching)
        continue;
      const auto [host, isNew] = hostOf.try_emplace(names[at], hosts.size());
      if (isNew) hosts.push_back({names[at], {}});
      hosts[host->second].plugs.push_back({other, cable.bandwidth});
    }
  }
  return hosts;
}

}  // namespace tacc
