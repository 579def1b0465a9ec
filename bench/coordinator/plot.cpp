#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/reports.hpp"
#include "coordinator/svg.hpp"
#include "support/sizes.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

constexpr double width = 880, height = 520;
constexpr double plotLeft = 84, plotRight = 190, plotTop = 56, plotBottom = 64;
std::string formatTime(double microseconds) {
  if (microseconds >= 1e6) return fmt::format("{:g} s", microseconds / 1e6);
  if (microseconds >= 1e3) return fmt::format("{:g} ms", microseconds / 1e3);
  return fmt::format("{:g} µs", microseconds);
}

/// A logarithmic axis from one whole power of its base to another.
struct Axis {
  double base;
  int first;
  int last;
  double from;
  double to;

  static Axis around(double low, double high, double base, double from, double to) {
    const auto power = [&](double value) { return std::log(value) / std::log(base); };
    const int first = static_cast<int>(std::floor(power(low) + 1e-9));
    return {base, first, std::max(first + 1, static_cast<int>(std::ceil(power(high) - 1e-9))), from, to};
  }

  double value(int power) const { return std::pow(base, power); }
  double at(double value) const {
    return from + (to - from) * (std::log(value) / std::log(base) - first) / (last - first);
  }
};

std::string drawFrame(const Axis& x, const Axis& y) {
  std::string svg;
  const int every = (x.last - x.first + 11) / 12;
  for (int power = x.first; power <= x.last; power += every) {
    svg += line(x.at(x.value(power)), plotTop, x.at(x.value(power)), height - plotBottom, "#e4e4e4");
    svg += textAt(x.at(x.value(power)), height - plotBottom + 18, "middle",
                  tools::formatSize(static_cast<size_t>(std::llround(x.value(power)))));
  }
  for (int power = y.first; power <= y.last; ++power) {
    svg += line(plotLeft, y.at(y.value(power)), width - plotRight, y.at(y.value(power)), "#e4e4e4");
    svg += textAt(plotLeft - 8, y.at(y.value(power)) + 4, "end", formatTime(y.value(power)));
  }
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444444\"/>\n",
                     plotLeft, plotTop, width - plotLeft - plotRight, height - plotTop - plotBottom);
  svg += textAt((plotLeft + width - plotRight) / 2, height - 18, "middle", "size");
  const double middle = (plotTop + height - plotBottom) / 2;
  svg += textAt(20, middle, "middle", "time (lower is better)",
                fmt::format(" transform=\"rotate(-90 20 {:.1f})\"", middle).c_str());
  return svg;
}

std::string drawSeries(const Series& series, size_t index, const Axis& x, const Axis& y) {
  const char* color = seriesColor(index);
  const char* thickness = index == 0 ? "3" : "1.8";
  std::string path, marks;
  for (const Series::Point& point : series.points) {
    path += fmt::format("{:.1f},{:.1f} ", x.at(point.bytes), y.at(point.microseconds));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(point.bytes),
                         y.at(point.microseconds), color);
  }
  const double row = plotTop + 14 + 22 * static_cast<double>(index);
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", path, color,
                     thickness) +
         marks +
         fmt::format("<line x1=\"{0}\" y1=\"{2}\" x2=\"{1}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"{4}\"/>\n",
                     width - plotRight + 14, width - plotRight + 40, row, color, thickness) +
         textAt(width - plotRight + 48, row + 4, "start", series.label);
}

}  // namespace

std::vector<Series> collectSeries(const Options& options, const std::vector<Row>& rows) {
  const bool several = options.types.size() * options.ops.size() * options.roots.size() > 1;
  std::vector<Series> series;
  const auto add = [&](const std::string& name, const Row& row, const Outcome& outcome) {
    std::string label = name;
    if (several) {
      label += fmt::format(" {}", typeName(row.type));
      if (row.collective->reduces) label += fmt::format(" {}", row.opLabel());
      if (row.collective->rooted) label += fmt::format(" root {}", row.root);
    }
    auto found = std::find_if(series.begin(), series.end(), [&](const Series& s) { return s.label == label; });
    if (found == series.end()) found = series.insert(series.end(), Series{label, {}});
    if (row.bytes > 0 && outcome.microseconds > 0)
      found->points.push_back({static_cast<double>(row.bytes), outcome.microseconds});
  };
  for (const Row& row : rows) {
    add(options.reference, row, row.outOfPlace);
    for (const PeerOutcome& peer : row.peers)
      if (peer.outcome) add(peer.name, row, *peer.outcome);
    if (row.bound) add(options.cluster ? "network bound" : "memory bound", row, *row.bound);
  }
  return series;
}

std::string drawPlot(const std::string& title, const std::vector<Series>& series) {
  double smallest = 1, largest = 2, shortest = 1, longest = 10;
  bool any = false;
  for (const Series& s : series)
    for (const Series::Point& point : s.points) {
      smallest = any ? std::min(smallest, point.bytes) : point.bytes;
      largest = any ? std::max(largest, point.bytes) : point.bytes;
      shortest = any ? std::min(shortest, point.microseconds) : point.microseconds;
      longest = any ? std::max(longest, point.microseconds) : point.microseconds;
      any = true;
    }
  const Axis x = Axis::around(smallest, largest, 2, plotLeft, width - plotRight);
  const Axis y = Axis::around(shortest, longest, 10, height - plotBottom, plotTop);
  std::string svg = svgBegin(width, height) + textAt(plotLeft, 32, "start", title, titleFont);
  svg += drawFrame(x, y);
  for (size_t i = 0; i < series.size(); ++i) svg += drawSeries(series[i], i, x, y);
  return svg + svgEnd;
}

std::string plotTitle(const Options& options) {
  std::string title = fmt::format("{}, {} ranks", options.collective->name, options.ranks);
  if (options.types.size() == 1) title += fmt::format(", {}", typeName(options.types[0]));
  if (options.collective->reduces && options.ops.size() == 1) title += fmt::format(" {}", opName(options.ops[0]));
  return title + fmt::format(", {} memory", options.memoryName());
}

}  // namespace tacc::bench
