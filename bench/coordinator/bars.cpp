#include "coordinator/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/svg.hpp"

namespace tacc::bench {
namespace {

constexpr double left = 64, right = 170, top = 56, plotHeight = 360, bottom = 150;
constexpr double barWidth = 12, gap = 14;

/// 1, 2 or 5 times a power of ten, so that about five lines reach to `most`.
double stepFor(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * 5 >= most) return factor * power;
  }
  return 10 * power;
}

std::string rectangle(double x, double y, double width, double height, const char* color) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, color);
}

}  // namespace

std::string drawBars(const Bars& bars) {
  double most = std::max(bars.limit, 1e-9);
  for (const BarGroup& group : bars.groups) {
    for (const double value : group.values) most = std::max(most, value);
  }
  const double groupWidth = barWidth * static_cast<double>(bars.series.size()) + gap;
  const double width = std::max(200.0, groupWidth * static_cast<double>(bars.groups.size()) + gap);
  const double base = top + plotHeight;
  const double step = stepFor(most);
  const double highest = step * std::ceil(most / step);
  const auto heightOf = [&](double value) { return plotHeight * value / highest; };
  std::string svg = svgBegin(left + width + right, base + bottom) + textAt(left, 32, "start", bars.title, titleFont);
  for (double value = 0; value <= highest + step / 2; value += step) {
    svg += line(left, base - heightOf(value), left + width, base - heightOf(value), "#e4e4e4");
    svg += textAt(left - 8, base - heightOf(value) + 4, "end", fmt::format("{:g}", value));
  }
  svg += textAt(18, top + plotHeight / 2, "middle", bars.axis,
                fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", top + plotHeight / 2).c_str());
  double x = left + gap;
  for (const BarGroup& group : bars.groups) {
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      const double height = heightOf(group.values[i]);
      svg += rectangle(x + barWidth * static_cast<double>(i), base - height, barWidth - 1, height, seriesColor(i));
    }
    const double middle = x + (groupWidth - gap) / 2;
    svg += textAt(middle, base + 14, "end", group.label,
                  fmt::format(" transform=\"rotate(-60 {:.1f} {:.1f})\"", middle, base + 14).c_str());
    x += groupWidth;
  }
  double row = top + 14;
  for (std::size_t i = 0; i < bars.series.size(); ++i, row += 22) {
    svg += rectangle(left + width + 14, row - 10, barWidth, barWidth, seriesColor(i));
    svg += textAt(left + width + 34, row, "start", bars.series[i]);
  }
  if (bars.limit > 0) {
    svg += line(left, base - heightOf(bars.limit), left + width, base - heightOf(bars.limit), "#444444");
    svg += line(left + width + 12, row - 4, left + width + 28, row - 4, "#444444");
    svg += textAt(left + width + 34, row, "start", bars.limitLabel);
  }
  return svg + svgEnd;
}

}  // namespace tacc::bench
