#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "topology/draft.hpp"
#include "topology/host_list.hpp"
#include "topology/slurm.hpp"
#include "topology/switch_tree.hpp"
#include "topology/text_file.hpp"

namespace tacc {
namespace {

constexpr std::array<std::string_view, 6> keys = {"SwitchName", "Switches",  "Nodes",
                                                  "LinkSpeed",  "BlockName", "BlockSizes"};

bool sameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

struct LogicalLine {
  std::string text;
  std::size_t number;  // of its first line in the file
};

/// Without comments, and with lines that end in a backslash joined to the next.
std::vector<LogicalLine> logicalLines(std::string_view text) {
  std::vector<LogicalLine> lines;
  bool continues = false;
  std::size_t number = 0;
  for (std::string_view line : linesOf(text)) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (!continues) lines.push_back({"", number});
    continues = line.ends_with('\\');
    if (continues) line.remove_suffix(1);
    lines.back().text += line;
  }
  return lines;
}

class ConfReader {
 public:
  ConfReader(std::string_view text, const std::string& origin) : origin_(origin) {
    for (const LogicalLine& line : logicalLines(text)) read(line);
  }

  Topology topology() {
    if (!blocks_.blocks.empty() && !switches_.empty()) {
      fail(taccInvalidArgument, "{}: has both SwitchName and BlockName; a network is a tree or has blocks", origin_);
    }
    if (!blocks_.blocks.empty()) return topologyOfBlocks(blocks_, origin_);
    if (switches_.empty()) {
      fail(taccInvalidArgument, "{}: no line begins with SwitchName= or BlockName=, so it is no topology.conf of Slurm",
           origin_);
    }
    return topologyOfSwitches(switches_, origin_);
  }

 private:
  void read(const LogicalLine& line) {
    where_ = fmt::format("{}:{}", origin_, line.number);
    std::map<std::string_view, std::string_view> values;
    for (const std::string_view word : wordsOf(line.text)) {
      const std::size_t equals = word.find('=');
      const std::string_view name = word.substr(0, equals);
      const auto key =
          std::find_if(keys.begin(), keys.end(), [&](std::string_view one) { return sameIgnoringCase(one, name); });
      if (equals == std::string_view::npos || key == keys.end()) {
        const std::string_view meant = nearest(name, keys);
        fail(taccInvalidArgument, "{}: unknown key \"{}\"{} (allowed: {})", where_, shownText(name),
             meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(keys));
      }
      if (!values.emplace(*key, word.substr(equals + 1)).second) {
        fail(taccInvalidArgument, "{}: {} stands twice in one line", where_, *key);
      }
    }
    if (values.empty()) return;
    if (values.contains("SwitchName"))
      readSwitch(values);
    else if (values.contains("BlockName"))
      readBlock(values);
    else if (values.contains("BlockSizes") && values.size() == 1)
      readSizes(values.at("BlockSizes"));
    else
      fail(taccInvalidArgument, "{}: a line begins with SwitchName=, BlockName= or BlockSizes=", where_);
  }

  using Values = std::map<std::string_view, std::string_view>;

  std::vector<std::string> names(const Values& values, std::string_view key) {
    if (!values.contains(key)) return {};
    try {
      std::vector<std::string> result = expandHosts(values.at(key), mostHosts - names_);
      names_ += result.size();
      return result;
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", where_, error.what());
    }
  }

  void readSwitch(const Values& values) {
    if (values.contains("BlockName") || values.contains("BlockSizes")) {
      fail(taccInvalidArgument, "{}: a switch and a block in one line", where_);
    }
    const std::vector<std::string> self = names(values, "SwitchName");
    if (self.size() != 1) fail(taccInvalidArgument, "{}: a line is about one switch, not {}", where_, self.size());
    SwitchEntry entry{self.front(), names(values, "Nodes"), names(values, "Switches"), where_};
    if (entry.hosts.empty() && entry.children.empty()) {
      fail(taccInvalidArgument, "{}: the switch {} has neither Nodes= nor Switches=", where_, self.front());
    }
    switches_.push_back(std::move(entry));
  }

  void readBlock(const Values& values) {
    if (!values.contains("Nodes") || values.size() != 2)
      fail(taccInvalidArgument, "{}: a block has Nodes= and no more", where_);
    blocks_.blocks.push_back({std::string(values.at("BlockName")), names(values, "Nodes"), where_});
  }

  void readSizes(std::string_view list) {
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      const auto size = parseInteger(list.substr(0, comma), 1, mostHosts);
      if (!size || blocks_.sizes.size() >= mostLevels) {
        fail(taccInvalidArgument, "{}: BlockSizes are numbers of hosts such as 18,36, not \"{}\"", where_,
             shownText(list));
      }
      blocks_.sizes.push_back(static_cast<std::uint32_t>(*size));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }

  const std::string& origin_;
  std::string where_;
  std::size_t names_ = 0;  // expanded so far, in all lines together
  std::vector<SwitchEntry> switches_;
  SlurmBlocks blocks_;
};

}  // namespace

Topology topologyFromSlurmConf(std::string_view text, const std::string& origin) {
  return ConfReader(text, origin).topology();
}

Topology topologyOfBlocks(const SlurmBlocks& blocks, const std::string& origin) {
  TopologyDraft draft;
  std::vector<std::size_t> blockOf;
  std::map<std::string_view, std::string_view> seen;
  for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
    const SlurmBlocks::Block& block = blocks.blocks[b];
    if (!seen.try_emplace(block.name, block.where).second) {
      fail(taccInvalidArgument, "{}: the block {} stands in {} already", block.where, shownText(block.name),
           seen.at(block.name));
    }
    for (const std::string& host : block.hosts) {
      draft.hosts.push_back(host);
      blockOf.push_back(b);
    }
  }
  if (draft.hosts.empty()) fail(taccInvalidArgument, "{}: no block has hosts", origin);
  LevelDraft level;
  level.level.name = "block";
  for (const std::size_t b : blockOf) level.groupOf.push_back(blocks.blocks[b].name);
  draft.levels.push_back(level);
  std::vector<std::uint32_t> sizes = blocks.sizes;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const std::uint32_t size : sizes) {  // the first is the block itself; the others join whole blocks
    const std::size_t joined = size / sizes.front();
    if (joined < 2 || joined >= blocks.blocks.size()) continue;
    level.level.kind = LevelKind::group;
    level.level.name = fmt::format("{} blocks", joined);
    level.groupOf.clear();
    for (const std::size_t b : blockOf) {
      level.groupOf.push_back(
          fmt::format("{} to {}", blocks.blocks[b / joined * joined].name,
                      blocks.blocks[std::min(b / joined * joined + joined, blocks.blocks.size()) - 1].name));
    }
    draft.levels.push_back(level);
  }
  try {
    return build(std::move(draft));
  } catch (const Error& error) {
    fail(error.result(), "{}: {}", origin, error.what());
  }
}

}  // namespace tacc
