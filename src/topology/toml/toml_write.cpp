#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

std::string inQuotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  return result + '"';
}

bool isBare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string keyOf(std::string_view name) { return isBare(name) ? std::string(name) : inQuotes(name); }

class Writer {
 public:
  explicit Writer(const Topology& topology) : topology_(topology) {}

  std::string write() {
    if (!topology_.name().empty()) line("name", inQuotes(topology_.name()));
    line("hosts", inQuotes(foldHosts(topology_.hostNames())));
    text_ += "\n[node]\n";
    figures(topology_.level(0));
    uplinks(0, "[node.uplinks]\n");
    for (int l = 1; l < topology_.levels(); ++l) {
      text_ += "\n[[level]]\n";
      level(l);
    }
    machines();
    return std::move(text_);
  }

 private:
  void line(std::string_view key, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), "{} = {}\n", key, value);
  }

  void figures(const Level& level) {
    if (level.kind != LevelKind::node || level.name != nameOf(level.kind)) line("name", inQuotes(level.name));
    if (level.alpha) line("latency", inQuotes(formatLatency(*level.alpha)));
    if (level.bandwidth) line("bandwidth", inQuotes(formatBandwidth(*level.bandwidth)));
    if (level.uplink) line("uplink", inQuotes(formatBandwidth(*level.uplink)));
    if (level.rails != 1) line("rails", std::to_string(level.rails));
    if (level.wiring != Wiring::tree) line("wiring", inQuotes(nameOf(level.wiring)));
    if (!level.dimensions.empty()) line("dimensions", '[' + level.dimensionsText(", ") + ']');
    if (level.links != 0) line("links", std::to_string(level.links));
    if (level.linkBandwidth) line("link", inQuotes(formatBandwidth(*level.linkBandwidth)));
  }

  void level(int l) {
    const Level& level = topology_.level(l);
    line("kind", inQuotes(nameOf(level.kind)));
    figures(level);
    if (l == topology_.root()) return;
    text_ += "[level.groups]\n";
    for (std::uint32_t g = 0; g < topology_.groups(l); ++g)
      line(keyOf(name(l, g)), inQuotes(hostsOf(topology_.hostsOf(l, g))));
    uplinks(l, "[level.uplinks]\n");
  }

  /// Of groups, or hosts, that differ from their level.
  void uplinks(int l, std::string_view title) {
    for (std::uint32_t g = 0; g < topology_.groups(l); ++g) {
      if (topology_.uplink(l, g) == topology_.level(l).uplink) continue;
      text_ += std::exchange(title, "");
      line(keyOf(l == 0 ? topology_.host(g) : name(l, g)), inQuotes(formatBandwidth(*topology_.uplink(l, g))));
    }
  }

  /// Groups without a name get their number, which stands behind a mark that the reader knows.
  std::string name(int l, std::uint32_t g) const {
    const std::string& own = topology_.groupName(l, g);
    return own.empty() ? fmt::format("#{}", g) : own;
  }

  std::string hostsOf(LeafRange range) const {
    return foldHosts(std::span(topology_.hostNames()).subspan(range.first, range.size()));
  }

  void machines() {
    for (const NodeDescription& node : topology_.nodeDescriptions()) {
      std::vector<std::string> hosts;
      for (std::uint32_t host = 0; host < topology_.hosts(); ++host) {
        if (topology_.node(host) == &node) hosts.push_back(topology_.host(host));
      }
      text_ += "\n[[machine]]\n";
      line("hosts", inQuotes(foldHosts(hosts)));
      line("cpus", inQuotes(formatCpus(node.cores)));
      for (std::size_t i = 0; i < node.levels.size(); ++i) {
        text_ += "[[machine.level]]\n";
        line("kind", inQuotes(nameOf(node.levels[i].kind)));
        line("sizes", inQuotes(formatSizes(node.nesting, static_cast<int>(i) + 1)));
        if (node.levels[i].bytes > 0) line("bytes", inQuotes(formatBytes(node.levels[i].bytes)));
      }
    }
  }

  const Topology& topology_;
  std::string text_;
};

}  // namespace

std::string topologyToToml(const Topology& topology) { return Writer(topology).write(); }

}  // namespace tacc
