#include "drawing.hpp"

#include <fmt/format.h>

#include "drawing_parts.hpp"
#include "panel.hpp"
#include "text_fit.hpp"
#include "topology/model/tree_text.hpp"

namespace tacc {
namespace {

std::string treeHeading(const Topology& topology, int level, std::uint32_t group) {
  if (level == topology.root()) return "Network";
  std::string text = "Inside " + groupLabel(topology, level, group);
  if (topology.groups(level) > 1)
    text += fmt::format(", one of {}", counted(topology.groups(level), topology.level(level).name));
  return text;
}

/// From a level inward: a part for each run of levels that are joined alike. Of many groups the first is opened.
double network(Canvas& canvas, double y) {
  const Topology& topology = canvas.topology;
  bool wide = false;
  for (int level = topology.root(); level > 0;) {
    const std::uint32_t group = topology.groupOf(level, 0);
    const auto [first, last] = inside(topology, level, group);
    int next = level - 1;
    if (topology.level(level).wiring == Wiring::torus) {
      y = drawTorus(canvas, level, group, y);
    } else if (last - first > 1 && topology.level(level).wiring == Wiring::allToAll) {
      y = drawAllToAll(canvas, level, group, y);
    } else if (level < topology.root() && topology.hostsOf(level, group).size() == 1) {
      break;  // a group of one host is that host
    } else {
      const std::string_view note = wide || canvas.widest <= 0 ? "" : "The wider a line, the more it carries.";
      wide = true;
      y = drawTree(canvas, level, group, panelHead(canvas, y, treeHeading(topology, level, group), note), next);
    }
    y += panelMargin;
    level = next;
  }
  return y;
}

}  // namespace

std::string drawing(const Topology& topology) {
  Canvas canvas(topology);
  const std::string title = topology.name().empty() ? "Topology" : topology.name();
  canvas.svg.text(panelMargin, 38, panelWidth, title, {.size = 20, .bold = true});
  canvas.svg.text(panelMargin, 58, panelWidth,
                  fmt::format("{}, {}, digest {}", counted(topology.hosts(), "host"),
                              counted(static_cast<std::uint64_t>(topology.levels()), "level"), digestText(topology)),
                  {.color = ink::grey});
  double y = drawLevels(canvas, 70) + panelMargin;
  if (topology.hosts() > 1) {
    y = network(canvas, y);
    const double below = drawUnlike(canvas, y);
    y = below > y ? below + panelMargin : y;
  }
  drawHosts(canvas, y);
  return canvas.svg.file(title, panelMargin);
}

}  // namespace tacc
