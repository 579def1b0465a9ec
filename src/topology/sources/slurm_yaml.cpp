#include <algorithm>
#include <array>
#include <set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/slurm_lines.hpp"
#include "topology/sources/slurm_yaml_tables.hpp"
#include "topology/sources/switch_tree.hpp"

namespace tacc {
namespace {

constexpr std::array<std::string_view, 5> kindNames = {"tree", "block", "ring", "torus3d", "flat"};

class YamlReader : private YamlTables {
 public:
  YamlReader(const std::string& origin, const SlurmSite& site) : YamlTables(origin), site_(site) {}

  Topology read(const YamlNode& file) {
    if (file.isTable())
      entries_.push_back(readEntry(file));
    else
      for (const YamlNode& entry : file.items()) entries_.push_back(readEntry(entry));
    if (entries_.empty()) reject(file, "a topology.yaml is a list: - topology: NAME");
    std::set<std::string_view> names;
    for (const Entry& entry : entries_)
      if (!names.insert(entry.name).second)
        reject(entry.node, fmt::format("the topology {} stands twice", shownText(entry.name)));
    return topologyOf(choose());
  }

 private:
  struct Entry {
    YamlNode node;
    std::string name, kind;
    bool isDefault;
  };

  Entry readEntry(const YamlNode& node) const {
    checkKeys(node, {"topology", "cluster_default", "tree", "block", "ring", "torus3d", "flat"}, true);
    if (!node["topology"].isSaid()) reject(node, "it has no key topology, its name");
    Entry entry{node, text(node, "topology"), "", node["cluster_default"].isSaid() && isTrue(node["cluster_default"])};
    for (const auto& [name, value] : node.entries()) {
      const std::string& key = name.text();
      if (key == "topology" || key == "cluster_default" || !value.isSaid()) continue;
      if (key == "flat" && !value.isTable() && !isTrue(value)) continue;
      if (!entry.kind.empty()) reject(name, fmt::format("it is of the kind {} and of the kind {}", entry.kind, key));
      entry.kind = key;
    }
    if (entry.kind.empty()) reject(node, fmt::format("it is of no kind ({})", listOf(kindNames)));
    return entry;
  }

  const Entry& choose() const {
    const std::optional<SlurmPartition> asked =
        entries_.size() > 1 ? topologyOfPartition(folderOf(origin_), site_) : std::nullopt;
    if (asked) {
      for (const Entry& entry : entries_)
        if (entry.name == asked->topology) return entry;
      fail(taccInvalidArgument, "{}: Topology={} of the job's partition is not in {}", asked->where,
           shownText(asked->topology), origin_);
    }
    const auto standard = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.isDefault; });
    return standard == entries_.end() ? entries_.front() : *standard;
  }

  Topology topologyOf(const Entry& entry) {
    const YamlNode body = entry.node[entry.kind];
    if (entry.kind == "tree") return readTree(body);
    if (entry.kind == "block") return readBlocks(body);
    if (entry.kind == "ring") return readRings(body);
    if (entry.kind == "torus3d") return readToruses(body);
    if (entry.kind == "flat") return flat(entry);
    reject(entry.node, fmt::format("the topology {} is of the kind {}, of which nothing is known here (known: {})",
                                   shownText(entry.name), shownText(entry.kind), listOf(kindNames)));
  }

  Topology readTree(const YamlNode& tree) {
    checkKeys(tree, {"switches"});
    std::vector<SwitchEntry> switches;
    for (const YamlNode& entry : list(tree, "switches")) {
      checkKeys(entry, {"switch", "children", "nodes"});
      switches.push_back({text(entry, "switch"), names(entry, "nodes"), names(entry, "children"), where(entry)});
      if (switches.size() > mostHosts) reject(entry, "there are too many switches");
    }
    return topologyOfSwitches(asTree(std::move(switches)), origin_);
  }

  Topology readBlocks(const YamlNode& block) {
    checkKeys(block, {"block_sizes", "blocks"});
    SlurmBlocks blocks;
    for (const YamlNode& entry : list(block, "blocks")) {
      checkKeys(entry, {"block", "nodes"});
      blocks.blocks.push_back({text(entry, "block"), names(entry, "nodes"), where(entry)});
    }
    const YamlNode sizes = block["block_sizes"];
    const auto add = [&](const YamlNode& entry) {
      const auto size = parseInteger(entry.text(), 1, mostHosts);
      if (!size || blocks.sizes.size() >= mostLevels) reject(entry, "block_sizes are numbers of hosts");
      blocks.sizes.push_back(static_cast<std::uint32_t>(*size));
    };
    if (sizes.isSaid()) {
      blocks.sizesWhere = where(sizes);
      if (sizes.isList())
        for (const YamlNode& entry : sizes.items()) add(entry);
      else
        add(sizes);
    }
    return topologyOfBlocks(blocks, origin_);
  }

  Topology readRings(const YamlNode& ring) {
    checkKeys(ring, {"rings"});
    std::vector<SlurmGrid> rings;
    for (const YamlNode& entry : list(ring, "rings")) {
      checkKeys(entry, {"ring", "nodes"});
      std::vector<std::string> hosts = names(entry, "nodes");
      const auto extent = static_cast<std::uint32_t>(hosts.size());
      rings.push_back({text(entry, "ring"), {extent}, std::move(hosts), where(entry)});
    }
    return topologyOfGrids(std::move(rings), "ring", origin_, site_.hosts);
  }

  static std::uint64_t placesIn(const std::vector<std::uint32_t>& extents) {
    return std::uint64_t{extents[0]} * extents[1] * extents[2];  // below 2^48
  }

  Topology readToruses(const YamlNode& torus3d) {
    checkKeys(torus3d, {"toruses"});
    std::vector<SlurmGrid> toruses;
    std::uint64_t places = 0;
    for (const YamlNode& entry : list(torus3d, "toruses")) {
      checkKeys(entry, {"name", "dims", "nodes", "regions", "placements"});
      SlurmGrid torus{text(entry, "name"), coordinates(entry, "dims", 1), {}, where(entry)};
      places += placesIn(torus.extents);
      if (places > mostHosts) reject(entry, fmt::format("the toruses have more than {} places", mostHosts));
      if (entry["nodes"].isSaid() == entry["regions"].isSaid()) reject(entry, "a torus has either nodes or regions");
      if (entry["nodes"].isSaid()) {
        torus.hosts = names(entry, "nodes");
        checkCount(entry, torus.hosts.size(), placesIn(torus.extents));
      } else {
        torus.hosts.resize(placesIn(torus.extents));
        for (const YamlNode& region : list(entry, "regions")) place(region, torus);
      }
      toruses.push_back(std::move(torus));
    }
    return topologyOfGrids(std::move(toruses), "torus", origin_, site_.hosts);
  }

  void checkCount(const YamlNode& node, std::size_t hosts, std::uint64_t places) const {
    if (hosts != places) reject(node, fmt::format("the dims have {} places, but there are {} nodes", places, hosts));
  }

  void place(const YamlNode& region, SlurmGrid& torus) {
    checkKeys(region, {"anchor", "dims", "nodes"});
    const std::vector<std::uint32_t> anchor = coordinates(region, "anchor", 0), dims = coordinates(region, "dims", 1);
    for (std::size_t d = 0; d < 3; ++d)
      if (anchor[d] + dims[d] > torus.extents[d]) reject(region, "the region does not lie wholly in its torus");
    const std::vector<std::string> hosts = names(region, "nodes");
    checkCount(region, hosts.size(), placesIn(dims));
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const std::size_t x = anchor[0] + i % dims[0], y = anchor[1] + i / dims[0] % dims[1],
                        z = anchor[2] + i / (std::size_t{dims[0]} * dims[1]);
      std::string& at = torus.hosts[(z * torus.extents[1] + y) * torus.extents[0] + x];
      if (!at.empty()) reject(region, fmt::format("{} would be at {},{},{}, where {} is", hosts[i], x, y, z, at));
      at = hosts[i];
    }
  }

  Topology flat(const Entry& entry) {
    if (!site_.hosts.empty()) return {};
    TopologyDraft draft;
    draft.root.name = entry.name;
    std::set<std::string> hosts;
    std::size_t left = std::size_t{1} << 20;
    for (const Entry& other : entries_) collect(other.node, 8, left, hosts);
    draft.hosts.assign(hosts.begin(), hosts.end());
    if (hosts.empty()) {
      reject(entry.node,
             fmt::format("the topology {} is flat: it groups no hosts, and none of the file's topologies names any",
                         shownText(entry.name)));
    }
    return build(std::move(draft));
  }

  /// What stands under a key nodes, wherever. Bounded, since an alias may stand for what it is in.
  void collect(const YamlNode& node, int depth, std::size_t& left, std::set<std::string>& hosts) {
    if (depth == 0 || left == 0) return;
    --left;
    for (const YamlNode& part : node.items()) collect(part, depth - 1, left, hosts);
    for (const auto& [name, value] : node.entries()) {
      if (name.text() == "nodes")
        hosts.merge([&] {
          const std::vector<std::string> some = names(node, "nodes");
          return std::set<std::string>(some.begin(), some.end());
        }());
      else
        collect(value, depth - 1, left, hosts);
    }
  }

  const SlurmSite& site_;
  std::vector<Entry> entries_;
};

}  // namespace

Topology topologyFromSlurmYaml(std::string_view text, const std::string& origin, const SlurmSite& site) {
  return YamlReader(origin, site).read(parseYaml(text, origin));
}

}  // namespace tacc
