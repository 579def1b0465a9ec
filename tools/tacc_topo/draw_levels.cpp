#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "drawing_parts.hpp"
#include "text_fit.hpp"
#include "topology/model/host_list.hpp"

namespace tacc {
namespace {

constexpr double rowHeight = 19, between = 20, mostCell = 300;
constexpr std::size_t mostUnlike = 16;

using Row = std::array<std::string, 7>;

/// "256", or "1 to 12" where groups differ.
std::string sizesOf(const Topology& topology, int level) {
  std::uint32_t least = 0xffffffff, most = 0;
  for (std::uint32_t group = 0; group < topology.groups(level); ++group) {
    least = std::min(least, topology.hostsOf(level, group).size());
    most = std::max(most, topology.hostsOf(level, group).size());
  }
  if (most == 0) return "";
  return least == most ? thousands(most) : fmt::format("{} to {}", thousands(least), thousands(most));
}

std::string wiringOf(const Level& level) {
  if (level.wiring == Wiring::tree) return "";
  std::string text(nameOf(level.wiring));
  if (!level.dimensions.empty()) text += ' ' + level.dimensionsText(" x ");
  if (level.linkBandwidth)
    text += fmt::format(", {} of {}", counted(std::max(level.links, 1u), "link"), shortSpeed(*level.linkBandwidth));
  return text;
}

std::string uplinkOf(const Topology& topology, int level) {
  if (level == topology.root() || topology.groups(level) == 0) return "";
  std::uint32_t unlike = 0;
  for (std::uint32_t group = 0; group < topology.groups(level); ++group)
    unlike += ownUplink(topology, level, group) ? 1 : 0;
  const auto& usual = topology.level(level).uplink;
  if (unlike == 0) return usual ? shortSpeed(*usual) : "";
  if (!usual || unlike == topology.groups(level)) {
    const std::string range = uplinkText(topology, level, 0, topology.groups(level));
    return range.empty() ? fmt::format("known of {}", thousands(unlike)) : range;
  }
  return fmt::format("{}, {} differ{}", shortSpeed(*usual), thousands(unlike), unlike == 1 ? "s" : "");
}

/// Folded, if it is not endless: what does not fit of it can be read where somebody points.
std::string listOf(const std::vector<std::string>& names, double room) {
  constexpr std::size_t longest = 4000;
  std::string folded = foldHosts(names);
  return folded.size() <= longest ? folded : hostsFor(names, room, 12);
}

Row rowOf(const Topology& topology, int level) {
  const Level& what = topology.level(level);
  return {what.name,
          thousands(topology.groups(level)),
          level > 0 ? sizesOf(topology, level) : "",
          what.alpha ? shortLatency(*what.alpha) : "",
          what.bandwidth ? shortSpeed(*what.bandwidth) : "",
          uplinkOf(topology, level),
          wiringOf(what)};
}

}  // namespace

double drawLevels(Canvas& canvas, double top) {
  const Topology& topology = canvas.topology;
  std::vector<Row> rows = {{"level", "groups", "hosts each", "latency", "one stream", "uplink of each", "joined as"}};
  for (int level = topology.root(); level >= 0; --level) rows.push_back(rowOf(topology, level));
  double x = panelMargin + 22;
  for (std::size_t column = 0; column < rows[0].size(); ++column) {
    double width = 0;
    bool isEmpty = true;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      width = std::max(width, std::min(mostCell, textWidth(rows[row][column], 12, row == 0)));
      isEmpty = isEmpty && (row == 0 || rows[row][column].empty());
    }
    if (isEmpty) continue;
    const bool isNumber = column == 1 || column == 2;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      canvas.svg.text(isNumber ? x + width : x, top + 14 + rowHeight * static_cast<double>(row), width,
                      rows[row][column], {.bold = row == 0, .anchor = isNumber ? Anchor::end : Anchor::start});
    }
    x += width + between;
  }
  const double ruler = top + 18;
  canvas.svg.line(panelMargin, ruler, x - between, ruler, 1, ink::pale);
  for (int level = topology.root(); level >= 0; --level) {
    const double y = top + 3 + rowHeight * (topology.root() - level + 1);
    canvas.svg.open("");
    canvas.svg.box({panelMargin, y, 14, 12}, {fillOf(topology, level)});
    canvas.svg.close();
  }
  return top + rowHeight * static_cast<double>(rows.size()) + 4;
}

double drawUnlike(Canvas& canvas, double top) {
  const Topology& topology = canvas.topology;
  std::map<std::pair<int, double>, std::vector<std::string>> unlike;  // by level from the outside, then by speed
  for (int level = topology.root() - 1; level >= 0; --level) {
    for (std::uint32_t group = 0; group < topology.groups(level); ++group) {
      const std::optional<double> own = ownUplink(topology, level, group);
      if (own && !canvas.named.contains({level, group}))
        unlike[{-level, *own}].push_back(groupLabel(topology, level, group));
    }
  }
  if (unlike.empty()) return top;
  double y = panelHead(canvas, top, "Other uplinks that are not as the rest of their level", "") - 12;
  std::size_t rows = 0, left = 0;
  for (const auto& [what, names] : unlike) {
    if (rows == mostUnlike && unlike.size() > mostUnlike + 1) {
      left += names.size();
      continue;
    }
    ++rows;
    const std::string head = shortSpeed(what.second) + ":";
    y += rowHeight;
    const double width = canvas.svg.text(panelMargin, y, 300, head, {.color = unlikeInk(topology, -what.first)}) + 8;
    canvas.svg.text(panelMargin + width, y, panelWidth - width, listOf(names, panelWidth - width));
  }
  if (left > 0) {
    canvas.svg.text(panelMargin, y += rowHeight, panelWidth, fmt::format("and {}", counted(left, "further group")),
                    {.color = ink::grey});
  }
  return y + 4;
}

}  // namespace tacc
