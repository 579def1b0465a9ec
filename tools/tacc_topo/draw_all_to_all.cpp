#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "drawing_parts.hpp"
#include "text_fit.hpp"

namespace tacc {
namespace {

constexpr double boxHeight = 46, small = 10, between = 10, most = 132;
constexpr std::size_t mostOnCircle = 20;

class Circle {
 public:
  Circle(Canvas& canvas, int level, std::uint32_t group)
      : canvas_(canvas), level_(level), what_(canvas.topology.level(level)) {
    const auto [first, last] = inside(canvas.topology, level, group);
    count_ = last - first;
    runs_ = choose(canvas.topology, level - 1, first, last, mostOnCircle);
    differs_ = uplinksDiffer(canvas.topology, level - 1);
    for (const Stretch& run : runs_) {
      const auto names = namesOf(canvas.topology, level - 1, run.first, run.last);
      const double hosts = level > 1 ? textWidth(hostsFor(names, most, small), small) : 0;
      width_ = std::clamp(std::max(textWidth(head(run), 12, true), hosts) + 14, width_, most);
    }
    // Boxes do not touch when their centres are a diagonal apart.
    const double apart = std::hypot(width_, boxHeight) + between, n = static_cast<double>(runs_.size());
    if (runs_.size() > 1)
      radius_ = std::max(apart / 2 / std::sin(std::numbers::pi / n), runs_.size() > 2 ? 90.0 : apart / 2);
  }

  double draw(std::uint32_t group, double top) {
    const Topology& topology = canvas_.topology;
    std::string heading = level_ == topology.root() ? what_.name : groupLabel(topology, level_, group);
    heading += fmt::format(": {}, each joined with each", counted(count_, topology.level(level_ - 1).name));
    const double y = panelHead(canvas_, top, heading, note());
    centreX_ = panelMargin + radius_ + width_ / 2;
    centreY_ = y + radius_ + boxHeight / 2;
    chords();
    for (std::size_t i = 0; i < runs_.size(); ++i) box(runs_[i], pointOf(i));
    return centreY_ + radius_ + boxHeight / 2;
  }

 private:
  bool isWhole() const { return runs_.size() == count_; }

  std::string note() const {
    std::string text;
    if (what_.links > 1 || what_.linkBandwidth) {
      const std::uint32_t links = std::max(what_.links, 1u);
      text = fmt::format("Between every two: {}", counted(links, "link"));
      if (what_.linkBandwidth) {
        text += fmt::format(" of {} each way", shortSpeed(*what_.linkBandwidth));
        if (links > 1) text += fmt::format(", {} together", shortSpeed(*what_.linkBandwidth * links));
      }
      text += ". ";
    }
    if (!isWhole()) {
      text += fmt::format("Of {} pairs only those of {} are drawn.",
                          thousands(std::uint64_t{count_} * (count_ - 1) / 2), head(runs_.front()));
    }
    return text;
  }

  std::string head(const Stretch& run) const {
    return run.isDrawn ? groupLabel(canvas_.topology, level_ - 1, run.first) : thousands(run.size()) + " more";
  }

  /// From the top, clockwise.
  std::pair<double, double> pointOf(std::size_t i) const {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(runs_.size());
    return {centreX_ + radius_ * std::sin(angle), centreY_ - radius_ * std::cos(angle)};
  }

  /// Where the border of a box faces the middle: chords from there do not run behind the boxes beside it.
  std::pair<double, double> inwardOf(std::size_t i) const {
    const auto [x, y] = pointOf(i);
    const double dx = centreX_ - x, dy = centreY_ - y;
    if (radius_ <= 0) return {x, y};
    const double out =
        std::min(width_ / 2 / std::max(std::abs(dx), 1e-9), boxHeight / 2 / std::max(std::abs(dy), 1e-9));
    return {x + dx * out, y + dy * out};
  }

  void chords() {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (std::size_t j = i + 1; j < runs_.size() && (i == 0 || isWhole()); ++j) {
        const auto [x1, y1] = inwardOf(i);
        const auto [x2, y2] = inwardOf(j);
        canvas_.svg.line(x1, y1, x2, y2, runs_.size() > 10 ? 1 : 1.6, "#8a94a0", !runs_[j].isDrawn);
      }
    }
  }

  void box(const Stretch& run, std::pair<double, double> centre) {
    const Topology& topology = canvas_.topology;
    const int level = level_ - 1;
    const auto names = namesOf(topology, level, run.first, run.last);
    const std::optional<double> own = run.isDrawn ? ownUplink(topology, level, run.first) : std::nullopt;
    const double room = width_ - 10, x = centre.first;
    const Box box{x - width_ / 2, centre.second - boxHeight / 2, width_, boxHeight};
    canvas_.svg.open(hostsFor(names, 600, 12));
    canvas_.svg.box(box, {run.isDrawn ? fillOf(topology, level) : std::string_view("#f4f4f4"),
                          own ? unlikeInk(topology, level) : ink::grey, !run.isDrawn});
    canvas_.svg.text(x, box.y + 15, room, head(run), {.bold = true, .anchor = Anchor::middle});
    canvas_.svg.text(x, box.y + 28, room,
                     level > 0     ? counted(names.size(), "host")
                     : run.isDrawn ? "host"
                                   : "hosts",
                     {.size = small, .color = "#333", .anchor = Anchor::middle});
    const std::string uplink = uplinkText(topology, level, run.first, run.last);
    const std::string last = differs_ && !uplink.empty() ? "uplink " + uplink : hostsFor(names, room, small);
    if (level > 0 || last.starts_with("uplink "))
      canvas_.svg.text(x, box.y + 41, room, last,
                       {.size = small, .color = own ? unlikeInk(topology, level) : "#333", .anchor = Anchor::middle});
    canvas_.svg.close();
    if (own) canvas_.named.emplace(level, run.first);
  }

  Canvas& canvas_;
  int level_;
  const Level& what_;
  std::uint32_t count_ = 0;  // of groups
  std::vector<Stretch> runs_;
  bool differs_ = false;
  double width_ = 96, radius_ = 0, centreX_ = 0, centreY_ = 0;
};

}  // namespace

double drawAllToAll(Canvas& canvas, int level, std::uint32_t group, double top) {
  return Circle(canvas, level, group).draw(group, top);
}

}  // namespace tacc
