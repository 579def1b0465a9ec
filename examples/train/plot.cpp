#include "plot.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "axis.hpp"

namespace tacc::train {
namespace {

constexpr double panelWidth = 360, panelHeight = 250;
constexpr double left = 70, top = 70, between = 80, below = 66, legendWidth = 240, legendLine = 20;
constexpr double nameWidth = 180, barLine = 20;  // of the bars
constexpr const char* sharesTitle = "share of the time that ranks waited for communication (%)";
constexpr double margin = 0.04;  // of a scale, beyond what is shown on it

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string words(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const std::string& look) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, look);
}

/// Colours that can be told apart also by those who do not see all of them, then the same ones dashed.
std::string lookOf(std::size_t curve) {
  constexpr std::array<const char*, 8> colors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#000000", "#999999"};
  constexpr std::array<const char*, 3> dashes = {"", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 3\""};
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}", colors[curve % colors.size()],
                     dashes[curve / colors.size() % dashes.size()]);
}

using Figure = std::function<double(const EpochRecord&)>;

/// What is shown along one side of a panel.
struct Quantity {
  std::string name;
  Figure figure;
  bool isLogarithmic = false;
  bool fromZero = false;

  Axis axis(const std::vector<Curve>& curves, double from, double to) const {
    double low = 1e300, high = -1e300;
    for (const Curve& curve : curves)
      for (const EpochRecord& record : curve.records) {
        low = std::min(low, figure(record));
        high = std::max(high, figure(record));
      }
    if (low > high) low = high = 1;
    if (isLogarithmic) return {low / (1 + margin), high * (1 + margin), from, to, true};
    const double room = (high - low) * margin;
    return {fromZero ? 0 : low - room, high + room, from, to, false};
  }
};

std::string drawPanel(double x, double y, const Quantity& along, const Quantity& up, const std::vector<Curve>& curves) {
  const double right = x + panelWidth, bottom = y + panelHeight;
  const Axis xs = along.axis(curves, x, right);
  const Axis ys = up.axis(curves, bottom, y);
  const std::string grid = "stroke=\"#e4e4e4\"";
  std::string svg;
  for (const double tick : xs.ticks())
    svg += line(xs.at(tick), y, xs.at(tick), bottom, grid) +
           words(xs.at(tick), bottom + 18, "middle", fmt::format("{:g}", tick));
  for (const double tick : ys.ticks())
    svg += line(x, ys.at(tick), right, ys.at(tick), grid) +
           words(x - 8, ys.at(tick) + 4, "end", fmt::format("{:g}", tick));
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444444\"/>\n", x, y,
                     panelWidth, panelHeight);
  svg += words((x + right) / 2, bottom + 40, "middle", along.name);
  const double middle = (y + bottom) / 2;
  svg +=
      words(x - 48, middle, "middle", up.name, fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x - 48, middle));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string points;
    for (const EpochRecord& record : curves[i].records)
      points += fmt::format("{:.1f},{:.1f} ", xs.at(along.figure(record)), ys.at(up.figure(record)));
    svg += fmt::format("<polyline points=\"{}\" {}><title>{}</title></polyline>\n", points, lookOf(i),
                       escaped(curves[i].run.label()));
  }
  return svg;
}

/// A bar for each run: the share of its time that ranks waited for communication.
std::string drawShares(double y, double width, const std::vector<Curve>& curves) {
  const Axis scale(0, 100, left + nameWidth, left + width, false);
  const double bottom = y + barLine * static_cast<double>(curves.size());
  std::string svg = words(left, y - 12, "start", sharesTitle, " font-weight=\"bold\"");
  for (const double tick : scale.ticks())
    svg += line(scale.at(tick), y, scale.at(tick), bottom, "stroke=\"#e4e4e4\"") +
           words(scale.at(tick), bottom + 16, "middle", fmt::format("{:g}", tick));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double share = 100 * curves[i].waitedShare();
    const double at = y + barLine * static_cast<double>(i);
    svg += words(left + nameWidth - 8, at + 14, "end", curves[i].run.label());
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#0072b2\"/>\n",
                       scale.at(0), at + 3, scale.at(share) - scale.at(0), barLine - 6);
    svg += words(scale.at(share) + 6, at + 14, "start", fmt::format("{:.0f}", share));
  }
  return svg;
}

std::string drawLegend(double x, const std::vector<Curve>& curves) {
  std::string svg;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double y = top + 10 + legendLine * static_cast<double>(i);
    svg += line(x, y, x + 34, y, lookOf(i)) + words(x + 42, y + 4, "start", curves[i].run.label());
  }
  return svg;
}

}  // namespace

std::string drawTraining(const std::string& title, const std::vector<Curve>& curves) {
  const std::array<Quantity, 2> across = {
      Quantity{"time (s)", [](const EpochRecord& record) { return record.seconds; }, false, true},
      Quantity{"images trained on, of all ranks (thousands)",
               [](const EpochRecord& record) { return static_cast<double>(record.images) / 1000; }, false, true}};
  const std::array<Quantity, 2> up = {
      Quantity{"loss in training (mean of an epoch)", [](const EpochRecord& record) { return record.loss; }, true},
      Quantity{"accuracy on the test images (%)", [](const EpochRecord& record) { return 100 * record.testAccuracy; }}};
  const double legendX = left + 2 * panelWidth + between + 30;
  const double width = legendX + legendWidth;
  const auto runs = static_cast<double>(curves.size());
  const double sharesTop = std::max(top + 2 * panelHeight + between + below, top + 20 + legendLine * runs) + 30;
  const double height = sharesTop + barLine * runs + 30;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      width, height);
  const std::size_t comma = title.find("; ");  // what is trained, then how: a line each
  svg += words(left, 26, "start", title.substr(0, comma), " font-size=\"15\" font-weight=\"bold\"");
  if (comma != std::string::npos) svg += words(left, 46, "start", title.substr(comma + 2));
  for (std::size_t row = 0; row < up.size(); ++row)
    for (std::size_t column = 0; column < across.size(); ++column)
      svg += drawPanel(left + static_cast<double>(column) * (panelWidth + between),
                       top + static_cast<double>(row) * (panelHeight + between), across[column], up[row], curves);
  return svg + drawLegend(legendX, curves) + drawShares(sharesTop, 2 * panelWidth + between, curves) + "</svg>\n";
}

}  // namespace tacc::train
