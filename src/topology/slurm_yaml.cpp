#include <yaml-cpp/yaml.h>

#include <optional>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "topology/draft.hpp"
#include "topology/host_list.hpp"
#include "topology/slurm.hpp"
#include "topology/switch_tree.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostYamlBytes = std::size_t{8} << 20;

class YamlReader {
 public:
  explicit YamlReader(const std::string& origin) : origin_(origin) {}

  Topology read(const YAML::Node& file) {
    if (!file.IsSequence()) reject(file, "a topology.yaml is a list: - topology: NAME");
    std::optional<YAML::Node> chosen;
    bool isDefault = false;
    for (const YAML::Node& entry : file) {
      checkKeys(entry, {"topology", "cluster_default", "tree", "block", "flat"});
      if (!entry["topology"]) reject(entry, "it has no key topology, its name");
      const bool says = entry["cluster_default"] && entry["cluster_default"].as<std::string>() == "true";
      if ((!entry["tree"] && !entry["block"]) || isDefault || (chosen && !says)) continue;
      chosen = entry;
      isDefault = says;
    }
    if (!chosen) reject(file, "none of its topologies is a tree or has blocks");
    return (*chosen)["tree"] ? readTree((*chosen)["tree"]) : readBlocks((*chosen)["block"]);
  }

 private:
  std::string where(const YAML::Node& node) const {
    return node.Mark().is_null() ? origin_ : fmt::format("{}:{}", origin_, node.Mark().line + 1);
  }
  [[noreturn]] void reject(const YAML::Node& node, std::string_view why) const {
    fail(taccInvalidArgument, "{}: {}", where(node), why);
  }

  void checkKeys(const YAML::Node& table, std::vector<std::string_view> allowed) const {
    if (!table.IsMap()) reject(table, fmt::format("here stands a table with the keys {}", listOf(allowed)));
    for (const auto& entry : table) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
      const std::string_view meant = nearest(key, allowed);
      reject(entry.first,
             fmt::format("unknown key \"{}\"{} (allowed: {})", shownText(key),
                         meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(allowed)));
    }
  }

  std::string text(const YAML::Node& table, const char* key) const {
    if (!table[key] || !table[key].IsScalar()) reject(table, fmt::format("the key {} is missing or no text", key));
    return table[key].Scalar();
  }

  std::vector<std::string> names(const YAML::Node& table, const char* key) {
    if (!table[key]) return {};
    try {
      std::vector<std::string> result = expandHosts(text(table, key), mostHosts - names_);
      names_ += result.size();
      return result;
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", where(table), error.what());
    }
  }

  const YAML::Node list(const YAML::Node& table, const char* key) const {
    if (!table[key] || !table[key].IsSequence()) reject(table, fmt::format("the key {} is missing or no list", key));
    return table[key];
  }

  Topology readTree(const YAML::Node& tree) {
    checkKeys(tree, {"switches"});
    std::vector<SwitchEntry> switches;
    for (const YAML::Node& entry : list(tree, "switches")) {
      checkKeys(entry, {"switch", "children", "nodes"});
      switches.push_back({text(entry, "switch"), names(entry, "nodes"), names(entry, "children"), where(entry)});
      if (switches.size() > mostHosts) reject(entry, "there are too many switches");
    }
    return topologyOfSwitches(switches, origin_);
  }

  Topology readBlocks(const YAML::Node& block) {
    checkKeys(block, {"block_sizes", "blocks"});
    SlurmBlocks blocks;
    for (const YAML::Node& entry : list(block, "blocks")) {
      checkKeys(entry, {"block", "nodes"});
      blocks.blocks.push_back({text(entry, "block"), names(entry, "nodes"), where(entry)});
    }
    if (block["block_sizes"]) {
      for (const YAML::Node& entry : list(block, "block_sizes")) {
        const auto size = parseInteger(entry.IsScalar() ? entry.Scalar() : "", 1, mostHosts);
        if (!size || blocks.sizes.size() >= mostLevels) reject(entry, "block_sizes are numbers of hosts");
        blocks.sizes.push_back(static_cast<std::uint32_t>(*size));
      }
    }
    return topologyOfBlocks(blocks, origin_);
  }

  const std::string& origin_;
  std::size_t names_ = 0;
};

}  // namespace

bool hasYaml() noexcept { return true; }

Topology topologyFromSlurmYaml(std::string_view text, const std::string& origin) {
  if (text.size() > mostYamlBytes) fail(taccInvalidArgument, "{}: larger than {} MiB", origin, mostYamlBytes >> 20);
  try {
    return YamlReader(origin).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    fail(taccInvalidArgument, "{}: no YAML: {}", origin, error.what());
  }
}

}  // namespace tacc
