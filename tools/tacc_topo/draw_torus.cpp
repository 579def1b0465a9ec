#include <fmt/format.h>

#include <algorithm>

#include "drawing_parts.hpp"
#include "text_fit.hpp"

namespace tacc {
namespace {

constexpr double stub = 12, small = 10, frameGap = 34, headRoom = 20, boxHeight = 36, radius = 4;
constexpr std::size_t mostLines = 24, mostSlices = 8, mostBoxes = 48, mostBoxColumns = 6;

/// The coordinates of one dimension that are drawn, from the first to the last; a gap may be in the middle.
struct Axis {
  std::uint32_t extent = 1;
  std::vector<std::uint32_t> drawn;
  double pitch = 0;

  Axis(std::uint32_t extentOf, std::size_t most) : extent(extentOf) {
    const std::size_t head = extent <= most ? extent : most - most / 3, tail = extent <= most ? 0 : most / 3;
    for (std::uint32_t i = 0; i < head; ++i) drawn.push_back(i);
    for (std::size_t i = tail; i > 0; --i) drawn.push_back(extent - static_cast<std::uint32_t>(i));
  }
  bool isWhole() const { return drawn.size() == extent; }
  /// Whether the next one that is drawn is not the next one.
  bool gapAfter(std::size_t i) const { return i + 1 < drawn.size() && drawn[i + 1] != drawn[i] + 1; }
  bool isRing() const { return extent > 2; }
  /// Where the i-th stands; beyond a gap all are one pitch further.
  double at(std::size_t i) const { return pitch * static_cast<double>(i + (drawn[i] != i ? 1 : 0)); }
  double length() const { return at(drawn.size() - 1); }
};

class Torus {
 public:
  Torus(Canvas& canvas, int level, std::uint32_t group)
      : canvas_(canvas),
        level_(level),
        what_(canvas.topology.level(level)),
        first_(inside(canvas.topology, level, group).first),
        columns_(what_.dimensions.back(), mostLines),
        rows_(what_.dimensions.size() > 1 ? what_.dimensions[what_.dimensions.size() - 2] : 1, mostLines),
        slices_(sliceCount(), sliceCount()) {
    const std::size_t places = std::size_t{columns_.extent} * rows_.extent * slices_.extent;
    hasBoxes_ = places <= mostBoxes && columns_.extent <= mostBoxColumns;
    boxWidth_ = hasBoxes_ ? widestName() : 0;
    columns_.pitch = hasBoxes_ ? boxWidth_ + 28 : std::max(columns_.extent, rows_.extent) > 12 ? 14 : 20;
    rows_.pitch = hasBoxes_ ? boxHeight + 24 : columns_.pitch;
    width_ = columns_.length() + 2 * marginX();
    if (slices_.extent > 1) width_ = std::max(width_, textWidth(sliceLabel(slices_.extent - 1), 11) + 16);
    const double fitting = (panelWidth + frameGap) / (width_ + frameGap);
    slices_ = Axis(slices_.extent, std::clamp<std::size_t>(static_cast<std::size_t>(fitting), 3, mostSlices));
  }

  double draw(std::uint32_t group, double top) {
    const Topology& topology = canvas_.topology;
    std::string heading = level_ == topology.root() ? what_.name : groupLabel(topology, level_, group);
    if (heading == "torus") heading.clear();
    heading += fmt::format("{}orus of {} {}", heading.empty() ? "T" : ": t", what_.dimensionsText(" x "),
                           counted(2, topology.level(level_ - 1).name).substr(2));
    const double y = panelHead(canvas_, top, heading, note());
    const double height = rows_.length() + 2 * marginY() + head();
    double x = panelMargin, bottom = y;
    Box before;
    for (std::size_t i = 0; i < slices_.drawn.size(); ++i) {
      if (x > panelMargin && x + width_ > panelMargin + panelWidth) x = panelMargin, bottom += height + frameGap;
      const Box frame{x, bottom, width_, height};
      if (isCube()) joinSlices(before, frame, i);
      slice(slices_.drawn[i], frame);
      before = frame;
      x += width_ + frameGap;
    }
    if (isCube() && slices_.isRing()) hook(before.right(), middleOf(before), 1, 0, 2);
    return bottom + height;
  }

 private:
  std::uint32_t sliceCount() const {
    std::uint32_t count = 1;
    for (std::size_t d = 0; d + 2 < what_.dimensions.size(); ++d) count *= what_.dimensions[d];
    return count;
  }
  /// Three dimensions: each slice is joined with the next one.
  bool isCube() const { return what_.dimensions.size() == 3 && slices_.extent > 1; }
  double head() const { return slices_.extent > 1 ? headRoom : 0; }
  double halfWidth() const { return hasBoxes_ ? boxWidth_ / 2 : radius; }
  double halfHeight() const { return hasBoxes_ ? boxHeight / 2 : radius; }
  double marginX() const { return stub + halfWidth() + 8; }
  double marginY() const { return stub + halfHeight() + 6; }
  double middleOf(const Box& frame) const { return frame.y + head() + (frame.height - head()) / 2; }
  std::uint32_t groupAt(std::uint32_t slice, std::uint32_t row, std::uint32_t column) const {
    return first_ + (slice * rows_.extent + row) * columns_.extent + column;
  }
  /// What a dimension is called: x, y, z, or a, b, c, ... where there are more.
  std::string nameOf(std::size_t dimension) const {
    const bool isUsual = what_.dimensions.size() <= 3;
    return std::string(1, static_cast<char>((isUsual ? 'x' : 'a') + static_cast<char>(dimension % 24)));
  }

  double widestName() const {
    double widest = 56;
    const std::uint32_t places = columns_.extent * rows_.extent * slices_.extent;
    for (std::uint32_t p = first_; p < first_ + places; ++p) {
      widest = std::max(widest, textWidth(groupLabel(canvas_.topology, level_ - 1, p), 11, true) + 12);
      if (const auto own = ownUplink(canvas_.topology, level_ - 1, p))
        widest = std::max(widest, textWidth(uplinkOf(*own), small) + 12);
    }
    return std::min(widest, 128.0);
  }

  static std::string uplinkOf(double speed) { return "uplink " + shortSpeed(speed); }

  std::string note() const {
    std::string text;
    if (what_.links > 1 || what_.linkBandwidth) {
      text = counted(std::max(what_.links, 1u), "link");
      if (what_.linkBandwidth) text += fmt::format(" of {} each way", shortSpeed(*what_.linkBandwidth));
      text += " between neighbours. ";
    }
    const std::size_t dimensions = what_.dimensions.size();
    text += nameOf(dimensions - 1) + " to the right";
    if (dimensions > 1) text += ", " + nameOf(dimensions - 2) + " downward";
    for (std::size_t d = 0; d + 2 < dimensions; ++d)
      text += (d == 0 ? ", " : "") + nameOf(d) + (d + 3 < dimensions ? ", " : "");
    if (dimensions > 2) text += " from slice to slice";
    if (dimensions > 3 && !slices_.isWhole())
      text += fmt::format(", {} of {}", slices_.drawn.size(), thousands(slices_.extent));
    text += ". Hooks go on at the other end.";
    if (!columns_.isWhole() || !rows_.isWhole()) text += " Dashed: places that are left out.";
    return text;
  }

  std::string sliceLabel(std::uint32_t slice) const {
    std::string names, values;
    std::uint32_t stride = slices_.extent;
    for (std::size_t d = 0; d + 2 < what_.dimensions.size(); ++d) {
      stride /= what_.dimensions[d];
      names += (d > 0 ? "," : "") + nameOf(d);
      values += fmt::format("{}{}", d > 0 ? "," : "", slice / stride % what_.dimensions[d]);
    }
    return names + " = " + values;
  }

  /// All links from each place of one slice to its like in the next one, as one line.
  void joinSlices(const Box& before, const Box& frame, std::size_t i) {
    const double y = middleOf(frame);
    if (i == 0) {
      if (slices_.isRing()) hook(frame.x, y, -1, 0, 2);
      return;
    }
    const bool isGap = slices_.gapAfter(i - 1);
    if (before.y == frame.y) {
      canvas_.svg.line(before.right(), y, frame.x, y, 2, ink::line, isGap);
    } else {
      canvas_.svg.line(before.right(), middleOf(before), before.right() + stub, middleOf(before), 2, ink::line, isGap);
      canvas_.svg.line(frame.x - stub, y, frame.x, y, 2, ink::line, isGap);
    }
    if (isGap) {
      const std::string left = thousands(slices_.drawn[i] - slices_.drawn[i - 1] - 1);
      canvas_.svg.textOn(before.y == frame.y ? (before.right() + frame.x) / 2 : frame.x - stub, y - 6, frameGap - 6,
                         "+" + left, {.size = small, .color = ink::grey});
    }
  }

  void slice(std::uint32_t slice, const Box& frame) {
    canvas_.svg.open("");
    canvas_.svg.box(frame, {"#fafafa", ink::pale});
    if (head() > 0)
      canvas_.svg.text(frame.x + 8, frame.y + 15, frame.width - 16, sliceLabel(slice),
                       {.size = 11, .color = ink::grey});
    const double x = frame.middle() - columns_.length() / 2, y = frame.y + head() + marginY();
    for (std::size_t r = 0; r < rows_.drawn.size(); ++r) strand(columns_, x, y + rows_.at(r), true);
    for (std::size_t c = 0; c < columns_.drawn.size(); ++c) strand(rows_, x + columns_.at(c), y, false);
    for (std::size_t r = 0; r < rows_.drawn.size(); ++r) {
      for (std::size_t c = 0; c < columns_.drawn.size(); ++c)
        place(groupAt(slice, rows_.drawn[r], columns_.drawn[c]), x + columns_.at(c), y + rows_.at(r));
    }
    canvas_.svg.close();
  }

  /// The links of one row or column, with its hooks.
  void strand(const Axis& axis, double x, double y, bool isRow) {
    if (axis.extent < 2) return;
    std::size_t from = 0;
    const auto point = [&](std::size_t i) { return std::pair(isRow ? x + axis.at(i) : x, isRow ? y : y + axis.at(i)); };
    for (std::size_t i = 0; i < axis.drawn.size(); ++i) {
      const bool isGap = axis.gapAfter(i);
      if (!isGap && i + 1 < axis.drawn.size()) continue;
      const auto [x1, y1] = point(from);
      const auto [x2, y2] = point(i);
      if (i > from) canvas_.svg.line(x1, y1, x2, y2, 1.2, ink::line);
      if (isGap) {
        const auto [x3, y3] = point(i + 1);
        canvas_.svg.line(x2, y2, x3, y3, 1.2, ink::line, true);
      }
      from = i + 1;
    }
    if (!axis.isRing()) return;
    const double half = isRow ? halfWidth() : halfHeight();
    const auto [x1, y1] = point(0);
    const auto [x2, y2] = point(axis.drawn.size() - 1);
    const double dx = isRow ? 1 : 0, dy = isRow ? 0 : 1;
    hook(x1 - dx * half, y1 - dy * half, -dx, -dy, 1.2);
    hook(x2 + dx * half, y2 + dy * half, dx, dy, 1.2);
  }

  /// A stub in the direction (dx, dy) that turns back.
  void hook(double x, double y, double dx, double dy, double width) {
    constexpr double out = stub - 5, turn = 5;
    const double ex = x + dx * out, ey = y + dy * out;
    const double side = dx + dy;  // both ends of a line turn to different sides, as a line round the back would
    const std::string data =
        fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}a2.5 2.5 0 0 {} {:.1f} {:.1f}", x, y, ex, ey,
                    (dx != 0) == (side > 0) ? 0 : 1, dy != 0 ? turn * 1.0 : 0.0, dx != 0 ? -turn * 1.0 : 0.0);
    canvas_.svg.path(data, {std::min(x, ex), std::min(y, ey), stub, stub}, width, ink::line);
  }

  void place(std::uint32_t group, double x, double y) {
    const Topology& topology = canvas_.topology;
    const auto names = namesOf(topology, level_ - 1, group, group + 1);
    const std::optional<double> own = ownUplink(topology, level_ - 1, group);
    const std::string_view fill = fillOf(topology, level_ - 1);
    canvas_.svg.open(hostsFor(names, 400, 12));
    if (!hasBoxes_) {
      canvas_.svg.circle(x, y, radius, fill, own ? unlikeInk(topology, level_ - 1) : ink::grey);
    } else {
      const Box box{x - boxWidth_ / 2, y - boxHeight / 2, boxWidth_, boxHeight};
      canvas_.svg.box(box, {fill, own ? unlikeInk(topology, level_ - 1) : ink::grey});
      std::string below = own          ? "uplink " + shortSpeed(*own)
                          : level_ > 1 ? hostsFor(names, boxWidth_ - 8, small)
                                       : "host";
      canvas_.svg.text(x, y - 3, boxWidth_ - 8, groupLabel(topology, level_ - 1, group),
                       {.size = 11, .bold = true, .anchor = Anchor::middle});
      canvas_.svg.text(
          x, y + 11, boxWidth_ - 8, below,
          {.size = small, .color = own ? unlikeInk(topology, level_ - 1) : ink::grey, .anchor = Anchor::middle});
      if (own) canvas_.named.emplace(level_ - 1, group);
    }
    canvas_.svg.close();
  }

  Canvas& canvas_;
  int level_;
  const Level& what_;
  std::uint32_t first_;  // the group at the origin
  Axis columns_, rows_, slices_;
  bool hasBoxes_ = false;
  double boxWidth_ = 0, width_ = 0;  // of a place; of a slice
};

}  // namespace

double drawTorus(Canvas& canvas, int level, std::uint32_t group, double top) {
  return Torus(canvas, level, group).draw(group, top);
}

}  // namespace tacc
