#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/slurm_lines.hpp"

namespace tacc {
namespace {

std::vector<std::string> partsOf(std::string_view address, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= address.size();) {
    const std::size_t end = std::min(address.find(separator, begin), address.size());
    parts.emplace_back(address.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The path of a host from the outermost switch to the innermost. Where a tree is uneven, a part is empty: no switch
/// there.
struct SlurmAddress {
  std::string host;
  std::string pattern;             // "switch.switch", "block", "torus:x:y:z"; empty: the host has no place
  std::vector<std::string> parts;  // one for each word of the pattern
};

[[noreturn]] void reject(const HostClues& host, std::string_view why) {
  fail(taccInvalidArgument, "host {}: SLURM_TOPOLOGY_ADDR=\"{}\" does not fit SLURM_TOPOLOGY_ADDR_PATTERN=\"{}\"{}",
       host.host, shownText(host.slurmAddress), shownText(host.slurmPattern), why);
}

SlurmAddress placeOf(const HostClues& host) {
  // A node's name may have dots itself, so the pattern, whose last word is "node", says how many others come first.
  const std::string_view address = host.slurmAddress;
  const std::size_t count = partsOf(host.slurmPattern.empty() ? address : host.slurmPattern, '.').size() - 1;
  std::vector<std::string> parts = partsOf(address, '.');
  if (parts.size() <= count || count > mostLevels) reject(host, "");
  parts.resize(count);
  for (const std::string_view name :
       {std::string_view(host.host), std::string_view(host.host).substr(0, host.host.find('.'))}) {
    if (name.empty() || host.slurmPattern.empty() || !address.ends_with(fmt::format(".{}", name))) continue;
    if (partsOf(address.substr(0, address.size() - name.size() - 1), '.').size() != count)
      reject(host, ": the name of a switch has a dot, so where it ends cannot be told");
    break;
  }
  SlurmAddress place{host.host, "", std::move(parts)};
  if (std::ranges::all_of(place.parts, [](const std::string& part) { return part.empty(); })) return place;
  place.pattern =
      host.slurmPattern.empty() ? std::string("switch") : host.slurmPattern.substr(0, host.slurmPattern.rfind('.'));
  return place;
}

/// For hosts without a place: Slurm knows of no switch that they share with others.
std::string nameAlone(const std::string& host) { return host + " (alone)"; }

class AddressTree {
 public:
  void add(const SlurmAddress& place) {
    std::vector<std::string> below;  // the switches of the part before, seen from the host
    for (std::size_t k = place.parts.size(); k-- > 0;) {
      if (place.parts[k].empty()) continue;
      // "s[0-1]": several switches. Those that a host is at count as one; upper ones are joined where they are shared.
      const std::vector<std::string> names =
          below.empty() ? std::vector<std::string>{place.parts[k]} : expandSlurmList(place.parts[k], mostHosts);
      for (const std::string& name : names) {
        SwitchEntry& entry = entries_[name];
        if (below.empty()) entry.hosts.push_back(place.host);
        for (const std::string& child : below)
          if (known_.emplace(name, child).second) entry.children.push_back(child);
      }
      below = names;
    }
    if (below.empty()) entries_[nameAlone(place.host)].hosts.push_back(place.host);
  }

  Topology topology() {
    std::vector<SwitchEntry> switches;
    for (auto& [name, entry] : entries_) {
      entry.name = name;
      entry.where = "SLURM_TOPOLOGY_ADDR";
      switches.push_back(std::move(entry));
    }
    return topologyOfSwitches(asTree(std::move(switches)), "SLURM_TOPOLOGY_ADDR");
  }

 private:
  std::map<std::string, SwitchEntry> entries_;
  std::set<std::pair<std::string, std::string>> known_;  // switch, child
};

Topology topologyOfBlockPlaces(const std::vector<SlurmAddress>& places) {
  std::map<std::string, std::vector<std::string>> hostsOf;
  for (const SlurmAddress& place : places)
    hostsOf[place.pattern.empty() ? nameAlone(place.host) : place.parts[0]].push_back(place.host);
  SlurmBlocks blocks;
  for (auto& [name, hosts] : hostsOf) blocks.blocks.push_back({name, std::move(hosts), "SLURM_TOPOLOGY_ADDR"});
  return topologyOfBlocks(blocks, "SLURM_TOPOLOGY_ADDR");
}

/// Coordinates as ranks among those that the job has: a torus of the hosts alone, if they fill a box of the whole one.
/// A box that goes round the end has the same neighbours when its coordinates are sorted.
SlurmGrid boxOf(const std::string& name, const std::map<std::vector<std::uint32_t>, std::string>& hosts) {
  SlurmGrid grid{name, {}, {}, "SLURM_TOPOLOGY_ADDR"};
  std::vector<std::set<std::uint32_t>> values(hosts.begin()->first.size());
  for (const auto& [at, host] : hosts)
    for (std::size_t d = 0; d < values.size(); ++d) values[d].insert(at[d]);
  std::size_t places = 1;
  for (const auto& axis : values) places *= axis.size();  // each axis has at most as many values as there are hosts
  grid.hosts.resize(hosts.size());
  if (places != hosts.size()) {
    std::ranges::transform(hosts, grid.hosts.begin(), [](const auto& one) { return one.second; });
    return grid;
  }
  for (const auto& axis : values) grid.extents.push_back(static_cast<std::uint32_t>(axis.size()));
  for (const auto& [at, host] : hosts) {
    std::size_t place = 0;
    for (std::size_t d = values.size(); d-- > 0;)
      place =
          place * values[d].size() + static_cast<std::size_t>(std::distance(values[d].begin(), values[d].find(at[d])));
    grid.hosts[place] = host;
  }
  return grid;
}

Topology topologyOfCoordinates(const std::vector<SlurmAddress>& places) {
  std::map<std::string, std::map<std::vector<std::uint32_t>, std::string>> grids;
  std::string kind;
  std::vector<SlurmGrid> result;
  for (const SlurmAddress& place : places) {
    if (place.pattern.empty()) {
      result.push_back({nameAlone(place.host), {}, {place.host}, "SLURM_TOPOLOGY_ADDR"});
      continue;
    }
    kind = place.pattern.substr(0, place.pattern.find(':'));
    const std::vector<std::string> parts = partsOf(place.parts[0], ':');
    std::vector<std::uint32_t> at;
    for (std::size_t d = 1; d < parts.size(); ++d) {
      const auto value = parseInteger(parts[d], 0, 0xffff);
      if (value) at.push_back(static_cast<std::uint32_t>(*value));
    }
    if (at.size() + 1 != partsOf(place.pattern, ':').size() || parts.size() != at.size() + 1) {
      fail(taccInvalidArgument, "host {}: SLURM_TOPOLOGY_ADDR has \"{}\" where the pattern has {}", place.host,
           shownText(place.parts[0]), shownText(place.pattern));
    }
    const auto [other, isNew] = grids[parts[0]].emplace(at, place.host);
    if (!isNew) {
      fail(taccInvalidArgument, "the hosts {} and {} have the same place in SLURM_TOPOLOGY_ADDR, {}", other->second,
           place.host, shownText(place.parts[0]));
    }
  }
  for (const auto& [name, hosts] : grids) result.push_back(boxOf(name, hosts));
  return topologyOfGrids(std::move(result), kind, "SLURM_TOPOLOGY_ADDR", {});
}

}  // namespace

Topology withNamesOfHosts(Topology topology, std::span<const HostClues> hosts) {
  std::map<std::string_view, std::string_view> ownNames;  // by Slurm's
  for (const HostClues& host : hosts) {
    if (host.slurmAddress.empty() || host.slurmPattern.empty() || topology.findHost(host.host)) continue;
    std::string_view name = host.slurmAddress;
    for (auto left = std::ranges::count(host.slurmPattern, '.'); left > 0 && !name.empty(); --left)
      name.remove_prefix(std::min(name.find('.'), name.size() - 1) + 1);
    if (topology.find(name)) ownNames.emplace(name, host.host);
  }
  if (ownNames.empty()) return topology;
  TopologyDraft draft = draftOf(topology);
  for (std::string& host : draft.hosts)
    if (const auto own = ownNames.find(host); own != ownNames.end()) host = own->second;
  return build(std::move(draft));
}

Topology topologyFromSlurmAddresses(std::span<const HostClues> hosts) {
  std::vector<SlurmAddress> places;
  const SlurmAddress* first = nullptr;  // with a place
  places.reserve(hosts.size());
  for (const HostClues& host : hosts) {
    if (host.slurmAddress.empty()) return {};
    const SlurmAddress& place = places.emplace_back(placeOf(host));
    if (place.pattern.empty()) continue;
    if (first == nullptr) first = &place;
    if (place.pattern != first->pattern || place.parts.size() != first->parts.size()) {
      fail(taccInvalidArgument,
           "SLURM_TOPOLOGY_ADDR has {} parts ({}) for host {}, but {} ({}) for host {}; one job has one topology",
           first->parts.size(), shownText(first->pattern), first->host, place.parts.size(), shownText(place.pattern),
           place.host);
    }
  }
  if (first == nullptr) return {};
  if (first->pattern.find(':') != std::string::npos && first->parts.size() == 1) return topologyOfCoordinates(places);
  if (first->pattern == "block") return topologyOfBlockPlaces(places);
  AddressTree tree;
  for (const SlurmAddress& place : places) tree.add(place);
  return tree.topology();
}

}  // namespace tacc
