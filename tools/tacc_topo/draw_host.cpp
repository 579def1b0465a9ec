#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "drawing_parts.hpp"
#include "text_fit.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

constexpr double pad = 7, gap = 6, headHeight = 17, coreHeight = 20, small = 10, linkHeight = 22, cardWidth = 58;
constexpr std::uint32_t mostCores = 320, mostAlike = 12;
constexpr std::size_t mostKinds = 6;

/// From the outside to the inside.
std::string_view fillOf(LevelKind kind) {
  switch (kind) {
    case LevelKind::socket:
      return "#e3edf7";
    case LevelKind::numa:
      return "#eaf5ea";
    case LevelKind::cache:
      return "#fdf3df";
    case LevelKind::core:
    case LevelKind::die:
    case LevelKind::node:
    case LevelKind::leaf:
    case LevelKind::group:
    case LevelKind::root:
      break;
  }
  return "#ffffff";
}

/// A box with its parts in rows, or several parts that are counted only.
struct Part {
  int level = 0;  // of the description's nesting; 0: a core
  Stretch run;
  double width = 0, height = 0;
  std::size_t columns = 1;
  std::vector<Part> parts;
};

/// What a host is joined to the network by.
struct Link {
  std::string text;  // of all cards together; empty: nothing is known
  std::uint32_t cards = 1;
  std::optional<double> carried;  // bytes/s
};

class Inside {
 public:
  Inside(Canvas& canvas, const NodeDescription& node) : canvas_(canvas), node_(node) {
    root_ = static_cast<int>(node.levels.size()) + 1;
    for (std::uint32_t core = 0; core < node.cores.size(); ++core)
      coreWidth_ = std::clamp(textWidth(coreName(core), small) + 6, coreWidth_, 60.0);
  }

  /// The host as a box, from (panelMargin, y) on, with its cards at the bottom. Returns the bottom.
  double draw(double y, const Link& link) {
    Part host = partOf(root_, 0);
    const bool hasCards = link.cards > 1;
    const double least =
        std::max(textWidth(link.text, 11) + 20, hasCards ? std::min(link.cards, mostAlike) * (cardWidth + gap) : 0);
    host.width = std::max(host.width, std::min(panelWidth, least + 2 * pad));
    const double below = hasCards ? gap + coreHeight : 0;
    host.height += link.text.empty() ? 0 : gap + linkHeight + below;
    const Box box{panelMargin, y, host.width, host.height};
    canvas_.svg.open("host");
    canvas_.svg.box(box, {"#f7f7f7", ink::grey});
    parts(host, box.x, box.y + pad);
    if (!link.text.empty()) {
      const Box port{box.x + pad, box.bottom() - pad - linkHeight - below, box.width - 2 * pad, linkHeight};
      canvas_.svg.open("");
      canvas_.svg.box(port, {cardFill, ink::grey});
      canvas_.svg.text(port.x + 8, port.y + 15, port.width - 16, link.text, {.size = 11});
      canvas_.svg.close();
      if (hasCards)
        cards(link, {port.x, port.bottom() + gap, port.width, coreHeight}, box.bottom());
      else
        cable(port.x + 24, port.bottom(), box.bottom(), link.carried);
    }
    canvas_.svg.close();
    return box.bottom() + (link.text.empty() ? 0 : 16);
  }

 private:
  static constexpr std::string_view cardFill = "#e8e2f3";

  /// Out of the host, whose bottom this is.
  void cable(double x, double from, double bottom, const std::optional<double>& carried) {
    canvas_.svg.line(x, from, x, bottom + 16, lineWidth(canvas_, carried), ink::line);
  }

  /// Side by side as far as there is room; of more the first and the last, and how many are between.
  void cards(const Link& link, const Box& row, double bottom) {
    const auto room = static_cast<std::uint32_t>((row.width + gap) / (cardWidth + gap));
    const std::optional<double> each =
        link.carried ? std::optional(*link.carried / static_cast<double>(link.cards)) : std::nullopt;
    for (std::uint32_t place = 0; place < std::min(room, link.cards); ++place) {
      const bool isLast = place + 1 == room && room < link.cards;
      const bool isRest = place + 2 == room && room < link.cards;
      const Box box{row.x + place * (cardWidth + gap), row.y, cardWidth, row.height};
      canvas_.svg.open("");
      canvas_.svg.box(box, {isRest ? "#f4f4f4" : cardFill, ink::grey, isRest});
      canvas_.svg.text(box.middle(), box.y + 14, box.width - 4,
                       isRest ? fmt::format("{} more", thousands(link.cards - room + 1))
                              : fmt::format("card {}", isLast ? link.cards - 1 : place),
                       {.size = small, .anchor = Anchor::middle});
      canvas_.svg.close();
      if (!isRest) cable(box.middle(), box.bottom(), bottom, each);
    }
  }

  std::string coreName(std::uint32_t core) const { return std::to_string(node_.cores[core].front()); }

  std::pair<std::uint32_t, std::uint32_t> below(int level, std::uint32_t group) const {
    const LeafRange cores = level == root_ ? LeafRange{0, static_cast<std::uint32_t>(node_.cores.size())}
                                           : node_.nesting.leavesOf(level, group);
    if (level == 1) return {cores.first, cores.last};
    return {node_.nesting.groupOf(level - 1, cores.first), node_.nesting.groupOf(level - 1, cores.last - 1) + 1};
  }

  std::string title(const Part& part) const {
    if (part.level == root_) return "";
    if (!part.run.isDrawn) return fmt::format("{} more", thousands(part.run.size()));
    const InnerLevel& what = node_.levels[static_cast<std::size_t>(part.level) - 1];
    if (what.kind == LevelKind::cache) return what.bytes > 0 ? "cache " + formatBytes(what.bytes) : "cache";
    return fmt::format("{} {}", what.kind == LevelKind::numa ? std::string_view("NUMA") : nameOf(what.kind),
                       part.run.first);
  }

  /// All of it where the host is small, else the first parts of each and how many more there are.
  std::vector<Stretch> chosen(std::uint32_t first, std::uint32_t last, bool isCore) const {
    std::vector<Stretch> runs;
    const std::uint32_t most = isCore ? 2 * mostAlike : mostAlike / 3;
    const bool isAll = node_.cores.size() <= mostCores || last - first <= most;
    const std::uint32_t end = isAll ? last : first + most - 2;
    for (std::uint32_t i = first; i < end; ++i) runs.push_back({i, i + 1, true});
    if (!isAll) {
      runs.push_back({end, last - 1, false});
      runs.push_back({last - 1, last, true});
    }
    return runs;
  }

  /// Measured from the inside to the outside.
  Part partOf(int level, std::uint32_t group) const {
    Part part{level, {group, group + 1, true}, coreWidth_, coreHeight, 1, {}};
    if (level == 0) return part;
    const auto [first, last] = below(level, group);
    double most = 0;
    for (const Stretch& run : chosen(first, last, level == 1)) {
      part.parts.push_back(run.isDrawn ? partOf(level - 1, run.first)
                                       : Part{level - 1, run, level == 1 ? 52.0 : 70.0, coreHeight, 1, {}});
      most = std::max(most, part.parts.back().width);
    }
    const std::size_t count = part.parts.size();
    // Sockets stand side by side as far as the page goes, what is inside of them about as wide as high.
    const auto across = static_cast<std::size_t>(std::max(1.0, (panelWidth - 60) / (most + gap)));
    const std::size_t wanted = std::max(roomFor(level, most), squarish(count, most, part.parts[0].height));
    part.columns = std::min({count, across, level == root_ ? across : wanted});
    const std::size_t rows = (count + part.columns - 1) / part.columns;
    part.columns = (count + rows - 1) / rows;  // so that all rows are alike, or nearly
    layOut(part);
    return part;
  }

  /// Columns that are there anyway, however few parts.
  static std::size_t roomFor(int level, double width) {
    return level == 1 ? 4 : static_cast<std::size_t>(240 / (width + gap));
  }

  static std::size_t squarish(std::size_t count, double width, double height) {
    const double columns = std::sqrt(static_cast<double>(count) * (height + gap) / (width + gap) * 2);
    return std::max<std::size_t>(1, static_cast<std::size_t>(columns));
  }

  void layOut(Part& part) const {
    double width = 0, height = 0;
    for (std::size_t i = 0; i < part.parts.size(); i += part.columns) {
      double rowWidth = -gap, rowHeight = 0;
      for (std::size_t j = i; j < std::min(i + part.columns, part.parts.size()); ++j) {
        rowWidth += part.parts[j].width + gap;
        rowHeight = std::max(rowHeight, part.parts[j].height);
      }
      width = std::max(width, rowWidth);
      height += rowHeight + gap;
    }
    const double head = part.level == root_ ? 0 : headHeight;
    part.width = std::max(width, textWidth(title(part), 11, true)) + 2 * pad;
    part.height = height - gap + 2 * pad + head;
  }

  void parts(const Part& part, double x, double y) {
    double at = x + pad, rowHeight = 0;
    for (std::size_t i = 0; i < part.parts.size(); ++i) {
      if (i > 0 && i % part.columns == 0) {
        at = x + pad;
        y += rowHeight + gap;
        rowHeight = 0;
      }
      const Part& one = part.parts[i];
      draw(one, {at, y, one.width, one.height});
      at += one.width + gap;
      rowHeight = std::max(rowHeight, one.height);
    }
  }

  void draw(const Part& part, const Box& box) {
    if (!part.run.isDrawn) {
      canvas_.svg.open("");
      canvas_.svg.box(box, {"#f4f4f4", ink::grey, true});
      canvas_.svg.text(box.middle(), box.y + 14, box.width - 4, title(part),
                       {.size = small, .color = ink::grey, .anchor = Anchor::middle});
      return canvas_.svg.close();
    }
    if (part.level == 0) {
      const std::vector<std::uint32_t>& threads = node_.cores[part.run.first];
      std::string all;
      for (const std::uint32_t thread : threads) all += fmt::format("{}{}", all.empty() ? "cpu " : ", ", thread);
      canvas_.svg.open(threads.size() > 1 ? all : "");
      canvas_.svg.box(box, {"white", ink::pale});
      canvas_.svg.text(box.middle(), box.y + 14, box.width - 2, coreName(part.run.first),
                       {.size = small, .color = "#333", .anchor = Anchor::middle});
      return canvas_.svg.close();
    }
    canvas_.svg.open("");
    canvas_.svg.box(box, {fillOf(node_.levels[static_cast<std::size_t>(part.level) - 1].kind), ink::grey});
    canvas_.svg.text(box.x + pad, box.y + 16, box.width - 2 * pad, title(part), {.size = 11, .bold = true});
    parts(part, box.x, box.y + pad + headHeight);
    canvas_.svg.close();
  }

  Canvas& canvas_;
  const NodeDescription& node_;
  int root_;
  double coreWidth_ = 24;
};

/// "link to the network: 6 GB/s", "8 cards to the network: 400 GB/s together".
Link linkOf(const Topology& topology, std::span<const std::uint32_t> hosts) {
  const std::uint32_t cards = topology.level(0).rails;
  const std::string what = cards > 1 ? fmt::format("{} cards to the network", cards) : "link to the network";
  Link link{cards > 1 ? what : "", cards, {}};
  double least = INFINITY, most = 0;
  for (const std::uint32_t host : hosts) {
    const std::optional<double> uplink = topology.uplink(0, host);
    if (!uplink) return link;
    least = std::min(least, *uplink);
    most = std::max(most, *uplink);
  }
  const std::string low = shortSpeed(least), high = shortSpeed(most);
  link.text = fmt::format("{}: {}{}", what, low == high ? high : low + " to " + high, cards > 1 ? " together" : "");
  link.carried = most;
  return link;
}

double drawKind(Canvas& canvas, const NodeDescription& node, std::span<const std::uint32_t> hosts, double top) {
  const Topology& topology = canvas.topology;
  std::vector<std::string> names;
  for (const std::uint32_t host : hosts) names.push_back(topology.host(host));
  const double room = panelWidth - textWidth("Inside  (40,960 hosts)", 15, true);
  std::string heading = "Inside " + hostsFor(names, room, 15, true);
  if (names.size() > 1) heading += fmt::format(" ({})", counted(names.size(), "host"));
  std::string note = node.summary() + "; cores with the number of their first thread";
  if (const auto& copying = topology.level(0).bandwidth) note += "; copying " + shortSpeed(*copying);
  const Link link = topology.hosts() > 1 || topology.level(0).uplink ? linkOf(topology, hosts) : Link{};
  const double y = panelHead(canvas, top, heading, note);
  return Inside(canvas, node).draw(y, link);
}

}  // namespace

double drawHosts(Canvas& canvas, double top) {
  const Topology& topology = canvas.topology;
  std::map<const NodeDescription*, std::vector<std::uint32_t>> hostsOf;
  for (std::uint32_t host = 0; host < topology.hosts(); ++host) {
    if (const NodeDescription* node = topology.node(host)) hostsOf[node].push_back(host);
  }
  double y = top;
  std::size_t kinds = 0;
  for (const NodeDescription& node : topology.nodeDescriptions()) {  // stand in one array, so in the map's order too
    if (++kinds > mostKinds) break;
    y = drawKind(canvas, node, hostsOf[&node], y) + panelMargin;
  }
  if (topology.nodeDescriptions().size() > mostKinds) {
    const std::size_t more = topology.nodeDescriptions().size() - mostKinds;
    canvas.svg.text(panelMargin, y + 12, panelWidth, counted(more, "further kind") + " of hosts", {.color = ink::grey});
    y += 12 + panelMargin;
  }
  return y;
}

}  // namespace tacc
