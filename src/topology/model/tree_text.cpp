#include "topology/model/tree_text.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

std::string orDash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : std::string("-");
}

/// "256", or "1 to 12" where groups differ.
std::string sizesOf(const Topology& topology, int level) {
  std::uint32_t least = 0xffffffff, most = 0;
  for (std::uint32_t g = 0; g < topology.groups(level); ++g) {
    least = std::min(least, topology.hostsOf(level, g).size());
    most = std::max(most, topology.hostsOf(level, g).size());
  }
  if (most == 0) return "-";
  return least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
}

std::string wiringOf(const Level& level) {
  std::string rails = level.rails == 1 ? "" : fmt::format("{} rails", level.rails);
  if (level.wiring == Wiring::tree) return rails;
  std::string text(nameOf(level.wiring));
  if (!level.dimensions.empty()) text += ' ' + level.dimensionsText();
  if (level.links > 0) text += fmt::format(", {} link{}", level.links, level.links == 1 ? "" : "s");
  if (level.linkBandwidth) text += fmt::format(" of {}", showBandwidth(*level.linkBandwidth));
  return rails.empty() ? text : rails + ", " + text;
}

void writeTable(std::string& text, const Topology& topology) {
  using Row = std::array<std::string, 8>;
  std::vector<Row> rows = {{"level", "kind", "groups", "hosts each", "alpha", "one stream", "uplink", "wiring"}};
  for (int l = 0; l < topology.levels(); ++l) {
    const Level& level = topology.level(l);
    rows.push_back({level.name, std::string(nameOf(level.kind)), std::to_string(topology.groups(l)),
                    sizesOf(topology, l), orDash(level.alpha, formatLatency), orDash(level.bandwidth, showBandwidth),
                    orDash(level.uplink, showBandwidth), wiringOf(level)});
  }
  std::array<std::size_t, 8> widths{};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool isNumber = c == 2 || c == 3;
      line += fmt::format("{}{}{}  ", isNumber ? std::string(widths[c] - row[c].size(), ' ') : "", row[c],
                          isNumber ? "" : std::string(widths[c] - row[c].size(), ' '));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
}

class TreeText {
 public:
  TreeText(std::string& text, const Topology& topology, std::size_t most)
      : text_(text), topology_(topology), most_(most) {}

  void write() {
    if (topology_.hosts() == 0) return;
    text_ += topology_.level(topology_.root()).name + '\n';
    children(topology_.root(), 0, "");
  }

 private:
  void children(int level, std::uint32_t group, const std::string& indent) {
    if (level == 1) return;  // hosts stand behind their group
    const LeafRange hosts = topology_.hostsOf(level, group);
    const std::uint32_t first = topology_.groupOf(level - 1, hosts.first);
    const std::uint32_t last = topology_.groupOf(level - 1, hosts.last - 1);
    const std::size_t count = last - first + 1;
    const std::size_t shown = count > most_ ? most_ / 2 : count;
    for (std::uint32_t g = first; g <= last; ++g) {
      if (count > most_ && g == first + shown) {
        const std::uint32_t skipped = static_cast<std::uint32_t>(count - shown) - 1;
        fmt::format_to(std::back_inserter(text_), "{}├── ... {} more, with hosts {} to {}\n", indent, skipped,
                       topology_.host(topology_.hostsOf(level - 1, g).first),
                       topology_.host(topology_.hostsOf(level - 1, g + skipped - 1).last - 1));
        g += skipped;
      }
      const bool isLast = g == last;
      branch(level - 1, g, indent + (isLast ? "└── " : "├── "), indent + (isLast ? "    " : "│   "));
    }
  }

  void branch(int level, std::uint32_t group, const std::string& head, const std::string& indent) {
    const LeafRange hosts = topology_.hostsOf(level, group);
    const std::string& name = topology_.groupName(level, group);
    fmt::format_to(std::back_inserter(text_), "{}{} {}: {} host{}", head, topology_.level(level).name,
                   name.empty() ? std::to_string(group) : name, hosts.size(), hosts.size() == 1 ? "" : "s");
    if (level == 1) text_ += ' ' + someHosts(std::span(topology_.hostNames()).subspan(hosts.first, hosts.size()));
    const std::optional<double> uplink = topology_.uplink(level, group);
    if (uplink && uplink != topology_.level(level).uplink) text_ += ", uplink " + showBandwidth(*uplink);
    text_ += '\n';
    children(level, group, indent);
  }

  std::string& text_;
  const Topology& topology_;
  std::size_t most_;
};

void writeNodes(std::string& text, const Topology& topology) {
  for (const NodeDescription& node : topology.nodeDescriptions()) {
    std::vector<std::string> hosts;
    for (std::uint32_t host = 0; host < topology.hosts(); ++host) {
      if (topology.node(host) == &node) hosts.push_back(topology.host(host));
    }
    fmt::format_to(std::back_inserter(text), "\nInside {} (cpus {}): {}\n", someHosts(hosts), formatCpus(node.cores),
                   node.summary());
  }
}

}  // namespace

std::string digestText(const Topology& topology) { return fmt::format("{:016x}", topology.digest()); }

std::string treeText(const Topology& topology, std::size_t most) {
  std::string text = fmt::format("{}{} host{}, digest {}\n\n", topology.name().empty() ? "" : topology.name() + ": ",
                                 topology.hosts(), topology.hosts() == 1 ? "" : "s", digestText(topology));
  writeTable(text, topology);
  text += '\n';
  if (topology.levels() == 2 && topology.hosts() > 0) {
    fmt::format_to(std::back_inserter(text), "{}: {}\n", topology.level(1).name, someHosts(topology.hostNames()));
  } else {
    TreeText(text, topology, std::max<std::size_t>(most, 2)).write();
  }
  writeNodes(text, topology);
  return text;
}

}  // namespace tacc
