#include "panel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text_fit.hpp"

namespace tacc {
namespace {

constexpr std::array<std::string_view, 5> fills = {"#cfe3f5", "#d9efd9", "#fdeccd", "#eadff2", "#f3dede"};

/// How many runs these drawn groups make, sorted, with the gaps between them.
std::size_t runsOf(const std::set<std::uint32_t>& drawn, std::uint32_t first, std::uint32_t last) {
  std::size_t runs = drawn.size();
  std::uint32_t next = first;
  for (const std::uint32_t group : drawn) {
    runs += group != next ? 1 : 0;
    next = group + 1;
  }
  return runs + (next != last ? 1 : 0);
}

bool isNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Canvas::Canvas(const Topology& which) : topology(which) {
  for (int level = 0; level < topology.root(); ++level) {
    for (std::uint32_t group = 0; group < topology.groups(level); ++group)
      widest = std::max(widest, topology.uplink(level, group).value_or(0));
  }
}

std::vector<Stretch> choose(const Topology& topology, int level, std::uint32_t first, std::uint32_t last,
                            std::size_t most) {
  std::set<std::uint32_t> drawn;
  if (last - first <= most) {
    for (std::uint32_t group = first; group < last; ++group) drawn.insert(group);
  } else {
    drawn = {first, last - 1};
    const auto add = [&](std::uint32_t group) {
      const auto [at, isNew] = drawn.insert(group);
      if (isNew && runsOf(drawn, first, last) > most) drawn.erase(at);
    };
    for (std::uint32_t group = first; group < last && drawn.size() < most; ++group) {
      if (ownUplink(topology, level, group)) add(group);
    }
    for (std::uint32_t group = first; group - first < most; ++group) add(group);
  }
  std::vector<Stretch> runs;
  std::uint32_t next = first;
  for (const std::uint32_t group : drawn) {
    if (group != next) runs.push_back({next, group, false});
    runs.push_back({group, group + 1, true});
    next = group + 1;
  }
  if (next != last) runs.push_back({next, last, false});
  return runs;
}

std::pair<std::uint32_t, std::uint32_t> inside(const Topology& topology, int level, std::uint32_t group) {
  const LeafRange hosts = topology.hostsOf(level, group);
  return {topology.groupOf(level - 1, hosts.first), topology.groupOf(level - 1, hosts.last - 1) + 1};
}

std::string groupLabel(const Topology& topology, int level, std::uint32_t group) {
  const std::string& name = topology.groupName(level, group);
  if (level == topology.root()) return topology.level(level).name;
  if (!name.empty() && !(level > 0 && isNumber(name))) return name;
  return fmt::format("{} {}", topology.level(level).name, name.empty() ? std::to_string(group) : name);
}

std::span<const std::string> namesOf(const Topology& topology, int level, std::uint32_t first, std::uint32_t last) {
  const std::uint32_t begin = topology.hostsOf(level, first).first, end = topology.hostsOf(level, last - 1).last;
  return std::span(topology.hostNames()).subspan(begin, end - begin);
}

std::string_view fillOf(const Topology& topology, int level) {
  return fills[static_cast<std::size_t>(topology.root() - level) % fills.size()];
}

std::optional<double> ownUplink(const Topology& topology, int level, std::uint32_t group) {
  if (level == topology.root()) return std::nullopt;
  const std::optional<double> uplink = topology.uplink(level, group);
  return uplink == topology.level(level).uplink ? std::nullopt : uplink;
}

std::string_view unlikeInk(const Topology& topology, int level) {
  return topology.level(level).uplink ? ink::unlike : ink::black;
}

bool uplinksDiffer(const Topology& topology, int level) {
  for (std::uint32_t group = 0; group < topology.groups(level); ++group) {
    if (ownUplink(topology, level, group)) return true;
  }
  return false;
}

std::string uplinkText(const Topology& topology, int level, std::uint32_t first, std::uint32_t last) {
  double least = INFINITY, most = 0;
  for (std::uint32_t group = first; group < last; ++group) {
    const std::optional<double> uplink = topology.uplink(level, group);
    if (!uplink) return "";
    least = std::min(least, *uplink);
    most = std::max(most, *uplink);
  }
  std::string high = shortSpeed(most);
  const std::string low = shortSpeed(least);
  if (low == high) return high;
  const std::size_t unit = low.find(' ');
  return high.ends_with(low.substr(unit)) ? fmt::format("{} to {}", low.substr(0, unit), high)
                                          : fmt::format("{} to {}", low, high);
}

double lineWidth(const Canvas& canvas, const std::optional<double>& bytesPerSecond) {
  if (!bytesPerSecond || canvas.widest <= 0) return 1;
  return std::max(1.0, 6 * std::sqrt(std::min(1.0, *bytesPerSecond / canvas.widest)));
}

double panelHead(Canvas& canvas, double top, std::string_view heading, std::string_view note) {
  double y = top + 15;
  canvas.svg.text(panelMargin, y, panelWidth, heading, {.size = 15, .bold = true});
  if (!note.empty()) canvas.svg.text(panelMargin, y += 18, panelWidth, note, {.color = ink::grey});
  return y + 16;
}

}  // namespace tacc
