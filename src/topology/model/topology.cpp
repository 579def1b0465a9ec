#include "topology/model/topology.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "topology/model/digest.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/torus.hpp"

namespace tacc {
namespace {

void addLevel(Digest& digest, const Level& level) {
  digest.add(nameOf(level.kind));
  digest.add(level.name);
  for (const auto& number : {level.alpha, level.bandwidth, level.uplink, level.linkBandwidth}) digest.add(number);
  digest.add(nameOf(level.wiring));
  digest.add(std::uint64_t{level.links});
  digest.add(std::uint64_t{level.dimensions.size()});
  for (const std::uint32_t extent : level.dimensions) digest.add(std::uint64_t{extent});
  if (level.rails == 1) return;  // as if there were no such word, which most files do not have
  digest.add("rails");
  digest.add(std::uint64_t{level.rails});
}

}  // namespace

Topology::Topology(std::uint32_t hosts) : nesting_(hosts), levels_(2) {
  levels_[0].level.kind = LevelKind::node;
  levels_[0].level.name = nameOf(LevelKind::node);
  levels_[1].level.kind = LevelKind::root;
  levels_[1].level.name = nameOf(LevelKind::root);
  (void)nesting_.add(hosts == 0 ? std::vector<std::uint32_t>() : std::vector<std::uint32_t>{0});
}

std::optional<std::uint32_t> Topology::find(std::string_view name) const {
  const auto found = std::lower_bound(
      byName_.begin(), byName_.end(), name,
      [this](std::uint32_t host, std::string_view wanted) { return std::string_view(hosts_[host]) < wanted; });
  if (found == byName_.end() || hosts_[*found] != name) return std::nullopt;
  return *found;
}

std::optional<std::uint32_t> Topology::findHost(std::string_view ownName) const {
  const std::optional<std::uint32_t> found = find(ownName);
  return found ? found : find(ownName.substr(0, ownName.find('.')));
}

std::optional<double> Topology::uplink(int level, std::uint32_t group) const {
  const LevelGroups& groups = levels_[static_cast<std::size_t>(level)];
  if (level == root()) return std::nullopt;
  if (group < groups.uplinks.size() && groups.uplinks[group]) return groups.uplinks[group];
  return groups.level.uplink;
}

const std::string& Topology::groupName(int level, std::uint32_t group) const {
  static const std::string none;
  if (level == 0) return hosts_[group];
  const LevelGroups& groups = levels_[static_cast<std::size_t>(level)];
  return group < groups.names.size() ? groups.names[group] : none;
}

std::optional<double> Topology::bisection(int at) const {
  const Level& whole = level(at);
  if (at == 0 || hosts() == 0) return std::nullopt;
  const std::uint32_t below = groups(at - 1) / groups(at);  // groups inside one group of this level
  if (whole.wiring == Wiring::allToAll) {
    if (!whole.linkBandwidth) return std::nullopt;
    const std::uint32_t half = below / 2;
    return *whole.linkBandwidth * whole.links * half * (below - half);
  }
  if (whole.wiring == Wiring::torus) {
    if (!whole.linkBandwidth || whole.dimensions.empty()) return std::nullopt;
    const auto longest = std::max_element(whole.dimensions.begin(), whole.dimensions.end());
    if (*longest < 2) return std::nullopt;
    double across = 1;  // lines of the longest dimension; each is cut twice, or once when it has no ring
    for (const std::uint32_t extent : whole.dimensions) across *= extent;
    return across / *longest * (*longest > 2 ? 2 : 1) * whole.links * *whole.linkBandwidth;
  }
  double sum = 0;
  for (std::uint32_t g = 0; g < groups(at - 1); ++g) {
    const std::optional<double> one = uplink(at - 1, g);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return sum / groups(at) / 2;
}

const NodeDescription* Topology::node(std::uint32_t host) const {
  return host < nodeOf_.size() && nodeOf_[host] != noNode ? &nodes_[nodeOf_[host]] : nullptr;
}

std::uint64_t Topology::digest() const {
  Digest digest;
  digest.add(name_);
  digest.add(std::uint64_t{hosts_.size()});
  for (const std::string& host : hosts_) digest.add(host);
  digest.add(std::uint64_t{levels_.size()});
  for (int l = 0; l < levels(); ++l) {
    const LevelGroups& groups = levels_[static_cast<std::size_t>(l)];
    addLevel(digest, groups.level);
    if (l > 0) {
      digest.add(std::uint64_t{nesting_.groups(l)});
      for (std::uint32_t g = 0; g < nesting_.groups(l); ++g) digest.add(std::uint64_t{nesting_.leavesOf(l, g).first});
    }
    for (const std::string& name : groups.names) digest.add(name);
    for (const auto& uplink : groups.uplinks) digest.add(uplink);
  }
  digest.add(std::uint64_t{nodes_.size()});
  for (const NodeDescription& node : nodes_) node.addTo(digest);
  for (const std::uint32_t node : nodeOf_) digest.add(std::uint64_t{node});
  return digest.value();
}

/// `part`: the same level of the topology of `hosts` alone, which are sorted. It is a torus if they fill boxes of equal
/// sides; a side that is a part of a whole one then counts as closed, which it is not: plans need the order and sides.
void Topology::keepTorus(int level, std::span<const std::uint32_t> hosts, Level& part) const {
  if (part.wiring != Wiring::torus) return;
  std::vector<std::vector<std::uint32_t>> boxes;
  std::vector<std::uint32_t> places;  // in one torus
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::uint32_t torus = groupOf(level, hosts[i]), member = groupOf(level - 1, hosts[i]);
    if (i == 0 || member != groupOf(level - 1, hosts[i - 1]))
      places.push_back(member - groupOf(level - 1, hostsOf(level, torus).first));
    if (i + 1 < hosts.size() && torus == groupOf(level, hosts[i + 1])) continue;
    boxes.push_back(boxOf(part.dimensions, places));
    places.clear();
  }
  const bool isAlike = !boxes.empty() && std::ranges::all_of(boxes, [&](const auto& box) { return box == boxes[0]; });
  part.dimensions = isAlike ? boxes[0] : std::vector<std::uint32_t>();
  if (part.dimensions.empty()) part.wiring = Wiring::tree;
}

Topology Topology::only(std::span<const std::string> wanted) const {
  TopologyDraft all = draftOf(*this);
  TopologyDraft draft;
  draft.name = std::move(all.name);
  draft.node = std::move(all.node);
  draft.root = std::move(all.root);
  draft.hostUplinks = std::move(all.hostUplinks);
  draft.nodes = std::move(all.nodes);
  draft.hosts.assign(wanted.begin(), wanted.end());
  std::vector<std::uint32_t> indices;
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    const std::optional<std::uint32_t> host = find(name);
    if (host)
      indices.push_back(*host);
    else
      missing.push_back(name);
  }
  if (!missing.empty()) {
    fail(taccInvalidArgument, "the topology{} does not have the host{} {}; it has {} host{}: {}",
         name_.empty() ? "" : " of " + name_, missing.size() == 1 ? "" : "s", someHosts(missing), hosts(),
         hosts() == 1 ? "" : "s", someHosts(hosts_));
  }
  const auto isTorus = [](const LevelGroups& level) { return level.level.wiring == Wiring::torus; };
  if (std::ranges::any_of(levels_, isTorus)) {  // the order is that of the coordinates
    std::ranges::sort(indices);
    std::ranges::transform(indices, draft.hosts.begin(), [this](std::uint32_t host) { return hosts_[host]; });
  }
  for (LevelDraft& level : all.levels) {
    std::vector<std::string> groupOf;
    groupOf.reserve(indices.size());
    for (const std::uint32_t host : indices) groupOf.push_back(level.groupOf[host]);
    level.groupOf = std::move(groupOf);
    keepTorus(static_cast<int>(draft.levels.size()) + 1, indices, level.level);
    draft.levels.push_back(std::move(level));
  }
  keepTorus(root(), indices, draft.root);
  if (!all.nodeOf.empty()) {
    for (const std::uint32_t host : indices) draft.nodeOf.push_back(all.nodeOf[host]);
  }
  return build(std::move(draft));
}

std::vector<std::uint32_t> Topology::walk(std::span<const std::uint32_t> hostOf) {
  std::vector<std::uint32_t> ranks(hostOf.size());
  std::iota(ranks.begin(), ranks.end(), 0u);
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::uint32_t a, std::uint32_t b) { return hostOf[a] < hostOf[b]; });
  return ranks;
}

}  // namespace tacc
