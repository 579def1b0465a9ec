#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/slurm_lines.hpp"
#include "topology/sources/switch_tree.hpp"

namespace tacc {
namespace {

/// What a line is about, and the other keys that it may have. Some stand only in what `scontrol show topology` prints.
struct Kind {
  std::string_view name;
  std::array<std::string_view, 5> others;
};
constexpr std::array<Kind, 6> kinds = {{
    {"SwitchName", {"Switches", "Nodes", "LinkSpeed", "Level"}},
    {"BlockName", {"Nodes", "BlockIndex", "BlockSize"}},
    {"AggregatedBlock", {"Nodes", "BlockIndex", "BlockSize"}},
    {"BlockSizes", {}},
    {"RingName", {"Nodes", "RingSize"}},
    {"TorusName", {"Nodes", "Dims", "PlacementDims", "Anchors"}},
}};

std::vector<std::string_view> allKeys() {
  std::vector<std::string_view> keys;
  const auto add = [&](std::string_view key) {
    if (!key.empty() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  for (const Kind& kind : kinds) {
    add(kind.name);
    for (const std::string_view other : kind.others) add(other);
  }
  return keys;
}

class ConfReader {
 public:
  ConfReader(std::string_view text, const std::string& origin, const SlurmSite& site) : origin_(origin) {
    const SlurmIncludes includes{site.root, [&] { return slurmClusterName(folderOf(origin), site); }, nullptr};
    readSlurmLines(text, origin, includes, [this](const SlurmLine& line) { read(line); });
  }

  Topology topology(const SlurmSite& site) {
    std::vector<std::string_view> found;
    if (!switches_.empty()) found.emplace_back("SwitchName");
    if (!blocks_.blocks.empty()) found.emplace_back("BlockName");
    if (!rings_.empty()) found.emplace_back("RingName");
    if (!toruses_.empty()) found.emplace_back("TorusName");
    if (found.size() > 1) {
      fail(taccInvalidArgument, "{}: has both {} and {}; a network is a tree, or has blocks, rings or toruses", origin_,
           found[0], found[1]);
    }
    if (!switches_.empty()) return topologyOfSwitches(asTree(std::move(switches_)), origin_);
    if (!blocks_.blocks.empty()) return topologyOfBlocks(blocks_, origin_);
    if (!rings_.empty()) return topologyOfGrids(std::move(rings_), "ring", origin_, site.hosts);
    if (!toruses_.empty()) return topologyOfGrids(std::move(toruses_), "torus", origin_, site.hosts);
    fail(taccInvalidArgument,
         "{}: no line begins with SwitchName=, BlockName= or RingName=, so it is no topology.conf of Slurm", origin_);
  }

 private:
  void read(const SlurmLine& line) {
    line_ = &line;
    if (line.pairs.empty() && line.rest.find("scontrol") != std::string::npos) return;  // the command, copied with it
    const Kind* kind = nullptr;
    const std::vector<std::string_view> keys = allKeys();
    for (std::size_t i = 0; i < line.pairs.size(); ++i) {
      const std::string& key = line.pairs[i].first;
      if (std::ranges::none_of(keys, [&](std::string_view one) { return sameIgnoringCase(one, key); })) {
        const std::string_view meant = nearest(key, keys);
        reject(fmt::format("unknown key \"{}\"{} (allowed: {})", shownText(key),
                           meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(keys)));
      }
      for (std::size_t k = 0; k < i; ++k)
        if (sameIgnoringCase(line.pairs[k].first, key))
          reject(fmt::format("{} stands twice in one line", shownText(key)));
      const auto own = std::ranges::find_if(kinds, [&](const Kind& one) { return sameIgnoringCase(one.name, key); });
      if (own == kinds.end()) continue;
      if (kind != nullptr)
        reject(fmt::format("{} and {} in one line; a line is about one thing", kind->name, own->name));
      kind = &*own;
    }
    if (!line.rest.empty()) {
      reject(fmt::format("\"{}\" is no key=value{}", shownText(line.rest),
                         line.pairs.empty() ? "" : "; lists of names have no blanks in them"));
    }
    if (kind == nullptr) reject("a line begins with SwitchName=, BlockName=, BlockSizes= or RingName=");
    for (const auto& pair : line.pairs) {
      const std::string& key = pair.first;
      if (sameIgnoringCase(key, kind->name)) continue;
      const auto isOwn = [&](std::string_view one) { return sameIgnoringCase(one, key); };
      if (std::ranges::none_of(kind->others, isOwn))
        reject(fmt::format("{} does not belong to a line with {}", shownText(key), kind->name));
    }
    if (kind->name == "SwitchName") readSwitch();
    if (kind->name == "BlockName") blocks_.blocks.push_back({nameOf("BlockName", "block"), names("Nodes"), line.where});
    if (kind->name == "AggregatedBlock")
      blocks_.joined.push_back(
          {*line.value("AggregatedBlock"), names("AggregatedBlock"), size("BlockSize"), line.where});
    if (kind->name == "BlockSizes") readSizes(*line.value("BlockSizes"));
    if (kind->name == "RingName") {
      std::vector<std::string> hosts = names("Nodes");
      const auto extent = static_cast<std::uint32_t>(hosts.size());
      rings_.push_back({nameOf("RingName", "ring"), {extent}, std::move(hosts), line.where});
    }
    // The hosts are printed in the order of their names there, not in that of their coordinates.
    if (kind->name == "TorusName" && !line.value("PlacementDims"))
      toruses_.push_back({nameOf("TorusName", "torus"), {}, names("Nodes"), line.where});
  }

  [[noreturn]] void reject(std::string_view why) const { fail(taccInvalidArgument, "{}: {}", line_->where, why); }

  /// Whether scontrol printed the line: it cuts lines after SLURM_TOPO_LEN characters.
  bool isPrinted() const {
    return line_->value("Level") || line_->value("BlockIndex") || line_->value("RingSize") || line_->value("Dims");
  }
  std::string_view hintOfCut() const {
    return isPrinted() ? "; scontrol cuts lines where SLURM_TOPO_LEN is set or long lines are too long for it" : "";
  }

  std::vector<std::string> names(std::string_view key) {
    const std::optional<std::string> list = line_->value(key);
    if (!list || sameIgnoringCase(*list, "(null)")) return {};
    try {
      std::vector<std::string> result = expandSlurmList(*list, mostHosts - names_);
      names_ += result.size();
      return result;
    } catch (const Error& error) {
      const bool isCut = list->rfind('[') != list->npos && list->find(']', list->rfind('[')) == list->npos;
      fail(error.result(), "{}: {}{}", line_->where, error.what(), isCut ? hintOfCut() : "");
    }
  }

  std::string nameOf(std::string_view key, std::string_view what) {
    std::string name = line_->value(key).value_or("");
    if (name.empty()) reject(fmt::format("the {} has no name", what));
    return name;
  }

  std::uint32_t size(std::string_view key) const {
    const std::optional<std::string> text = line_->value(key);
    const auto value = parseInteger(text.value_or("0"), 0, mostHosts);
    if (!value) reject(fmt::format("{} is a number of hosts, not \"{}\"", key, shownText(*text)));
    return static_cast<std::uint32_t>(*value);
  }

  void readSwitch() {
    const std::vector<std::string> self = names("SwitchName");
    if (self.size() != 1) reject(fmt::format("a line is about one switch, not {}", self.size()));
    std::optional<std::int64_t> level;
    if (const auto text = line_->value("Level")) {
      level = parseInteger(*text, 0, 0xffff);
      if (!level) reject(fmt::format("Level is a number from 0 on, not \"{}\"", shownText(*text)));
    }
    SwitchEntry entry{self.front(), {}, names("Switches"), line_->where};
    if (level && *level > 0 && entry.children.empty()) {
      reject(fmt::format("the switch {} is of level {}, but has no Switches={}", entry.name, *level, hintOfCut()));
    }
    // What scontrol prints as Nodes of an upper switch are all hosts below it.
    if (!level || *level == 0) entry.hosts = names("Nodes");
    if (switches_.size() >= mostHosts) reject("there are too many switches");
    switches_.push_back(std::move(entry));
  }

  void readSizes(const std::string& list) {
    if (!blocks_.sizes.empty()) reject(fmt::format("BlockSizes stands in {} already", blocks_.sizesWhere));
    blocks_.sizesWhere = line_->where;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t comma = std::min(list.find(',', begin), list.size());
      const auto one = parseInteger(std::string_view(list).substr(begin, comma - begin), 1, mostHosts);
      if (!one || blocks_.sizes.size() >= mostLevels)
        reject(fmt::format("BlockSizes are numbers of hosts such as 18,36, not \"{}\"", shownText(list)));
      blocks_.sizes.push_back(static_cast<std::uint32_t>(*one));
      begin = comma + 1;
    }
  }

  const std::string& origin_;
  const SlurmLine* line_ = nullptr;  // that is read
  std::size_t names_ = 0;            // expanded so far, in all lines together
  std::vector<SwitchEntry> switches_;
  SlurmBlocks blocks_;
  std::vector<SlurmGrid> rings_, toruses_;
};

}  // namespace

Topology topologyFromSlurmConf(std::string_view text, const std::string& origin, const SlurmSite& site) {
  return ConfReader(text, origin, site).topology(site);
}

}  // namespace tacc
