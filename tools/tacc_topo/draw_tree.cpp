#include <fmt/format.h>

#include <algorithm>

#include "drawing_parts.hpp"
#include "text_fit.hpp"

namespace tacc {
namespace {

constexpr double gap = 12, boxHeight = 58, tierGap = 40, rowHeight = 19, rowStep = 24, small = 10, pad = 6, indent = 16;
constexpr std::size_t mostRows = 6, mostBeside = 4, fewest = 3;

/// What is drawn at one place: a group, or several that are counted only.
struct Item {
  int level = 0;
  Stretch run;
  double x = 0, width = 0;     // of the whole subtree
  std::vector<Item> children;  // empty: it is not opened
  std::vector<Stretch> hosts;  // of an opened group of level 1: rows below it
};

/// The lowest level that a tree shows which begins with one of `level`.
int treeEnd(const Topology& topology, int level) {
  int end = level - 1;
  while (end > 0 && topology.level(end).wiring == Wiring::tree) --end;
  return end;
}

class Tree {
 public:
  Tree(Canvas& canvas, int level) : canvas_(canvas), top_(level), end_(treeEnd(canvas.topology, level)) {
    // Hosts hang below their switch, one above the other; without a switch between them they are a tier of their own.
    next_ = end_;
    hasRows_ = end_ == 0 && level > 1;
    if (hasRows_) end_ = 1;
    for (int l = end_; l < level; ++l) differs_.push_back(uplinksDiffer(topology(), l));
    hostsDiffer_ = uplinksDiffer(topology(), 0);
  }

  double draw(std::uint32_t group, double y) {
    y_ = y;
    Item root = itemOf(top_, group, room());
    measure(root, std::clamp((panelWidth + gap) / static_cast<double>(abreast(root)) - gap, boxWidth_, 220.0));
    place(root, panelMargin);
    item(root);
    return bottom_;
  }

  /// The level of the groups whose inside is not drawn.
  int next() const { return next_; }

 private:
  const Topology& topology() const { return canvas_.topology; }
  /// How many boxes may stand side by side: fewer where hosts' names are long, so that they can be read.
  std::size_t room() const {
    double widest = boxWidth_;
    for (std::uint32_t host = 0; host < topology().hosts(); ++host)
      widest = std::max(widest, rowWidth({host, host + 1, true}));
    return static_cast<std::size_t>(std::clamp((panelWidth + gap) / (widest + gap), 4.0, 8.0));
  }

  /// Of the box of a host below its switch.
  double rowWidth(const Stretch& run) const {
    const double speed = hostsDiffer_ && run.isDrawn ? textWidth(speedOf(run), small, true) + 8 : 0;
    return textWidth(rowName(run), small, hostsDiffer_) + speed + indent + 2 * pad + 2;
  }

  double yOf(int level) const { return y_ + (boxHeight + tierGap) * (top_ - level); }

  /// How many of the lowest boxes a group has, or one more than `most`.
  std::size_t abreast(int level, std::uint32_t group, std::size_t most) const {
    if (level == end_) return 1;
    const auto [first, last] = inside(topology(), level, group);
    std::size_t sum = 0;
    for (std::uint32_t child = first; child < last && sum <= most; ++child) sum += abreast(level - 1, child, most);
    return std::min(sum, most + 1);
  }

  /// Opened as far as `room` boxes side by side allow.
  Item itemOf(int level, std::uint32_t group, std::size_t room) {
    Item item{level, {group, group + 1, true}, 0, 0, {}, {}};
    if (level == 1 && hasRows_) {
      const LeafRange hosts = topology().hostsOf(1, group);
      item.hosts = choose(topology(), 0, hosts.first, hosts.last, mostRows);
    }
    if (level == end_) return item;
    const auto [first, last] = inside(topology(), level, group);
    const bool isWhole = abreast(level, group, room) <= room, isLowest = level - 1 == end_;
    const std::size_t most = isWhole || isLowest ? room : std::min(mostBeside, room);
    const std::vector<Stretch> runs = choose(topology(), level - 1, first, last, std::max(most, fewest));
    const std::size_t left = isWhole ? room : room - std::min(room, runs.size() - 1);
    for (const Stretch& run : runs) {
      bool isOpen = run.isDrawn && (isWhole || isLowest || run.first == first);
      if (isOpen && left < fewest && abreast(level - 1, run.first, left) > left) {
        isOpen = false;
        next_ = level - 1;
      }
      item.children.push_back(isOpen ? itemOf(level - 1, run.first, left) : Item{level - 1, run, 0, 0, {}, {}});
    }
    return item;
  }

  static std::size_t abreast(const Item& item) {
    std::size_t sum = 0;
    for (const Item& child : item.children) sum += abreast(child);
    return std::max<std::size_t>(sum, 1);
  }

  /// Boxes are all alike, and wide enough for most names: what is opened may fill the page.
  void measure(const Item& item, double most) {
    if (item.children.empty()) {
      double wanted = textWidth(head(item), 12, true) + 2 * pad + 2;
      for (const Stretch& run : item.hosts) wanted = std::max(wanted, rowWidth(run));
      boxWidth_ = std::clamp(wanted, boxWidth_, most);
    }
    for (const Item& child : item.children) measure(child, most);
  }

  std::string speedOf(const Stretch& run) const { return uplinkText(topology(), 0, run.first, run.last); }

  void place(Item& item, double x) const {
    item.x = x;
    double at = x;
    for (Item& child : item.children) {
      place(child, at);
      at += child.width + gap;
    }
    item.width = item.children.empty() ? boxWidth_ : at - gap - x;
  }

  std::string head(const Item& item) const {
    return item.run.isDrawn ? groupLabel(topology(), item.level, item.run.first) : thousands(item.run.size()) + " more";
  }

  std::string rowName(const Stretch& run) const {
    const auto names = namesOf(topology(), 0, run.first, run.last);
    return run.isDrawn ? names.front() : thousands(run.size()) + " more";
  }

  void item(const Item& one) {
    const double y = yOf(one.level);
    box(one, {one.x, y, one.width, boxHeight});
    bottom_ = std::max(bottom_, y + boxHeight);
    if (!one.hosts.empty()) rows(one, y + boxHeight);
    bool isFirst = true;
    for (const Item& child : one.children) {
      uplink(child, y + boxHeight, isFirst);
      item(child);
      isFirst = false;
    }
  }

  void box(const Item& one, const Box& box) {
    const Stretch& run = one.run;
    const auto names = namesOf(topology(), one.level, run.first, run.last);
    const double room = box.width - 2 * pad;
    canvas_.svg.open(hostsFor(names, 600, 12));
    const bool isUnlike = run.isDrawn && ownUplink(topology(), one.level, run.first).has_value();
    canvas_.svg.box(box, {run.isDrawn ? fillOf(topology(), one.level) : std::string_view("#f4f4f4"),
                          isUnlike ? unlikeInk(topology(), one.level) : ink::grey, !run.isDrawn});
    const bool hasHosts = one.level > 0 || !run.isDrawn;
    const double down = hasHosts ? 0 : 8;  // two lines stand in the middle
    canvas_.svg.text(box.middle(), box.y + 18 + down, room, head(one), {.bold = true, .anchor = Anchor::middle});
    std::string what = "host";
    if (one.level > 0) what = counted(names.size(), "host");
    if (one.level > 1 && run.isDrawn) {
      const auto [first, last] = inside(topology(), one.level, run.first);
      what = fmt::format("{}, {}", counted(last - first, topology().level(one.level - 1).name), what);
      if (textWidth(what, 11) > room) what = counted(names.size(), "host");
    }
    if (!run.isDrawn && one.level == 0) what = "hosts";
    canvas_.svg.text(box.middle(), box.y + 34 + down, room, what,
                     {.size = 11, .color = "#333", .anchor = Anchor::middle});
    if (hasHosts) {
      canvas_.svg.text(box.middle(), box.y + 50, room, hostsFor(names, room, small),
                       {.size = small, .color = "#333", .anchor = Anchor::middle});
    }
    canvas_.svg.close();
  }

  /// From a box up to the tier above.
  void uplink(const Item& child, double above, bool isFirst) {
    const double x = child.x + child.width / 2, y = yOf(child.level);
    const Stretch& run = child.run;
    const std::optional<double> own = run.isDrawn ? ownUplink(topology(), child.level, run.first) : std::nullopt;
    const std::optional<double> carried = topology().uplink(child.level, run.first);
    canvas_.svg.line(x, above, x, y, run.isDrawn ? lineWidth(canvas_, carried) : 1,
                     own ? unlikeInk(topology(), child.level) : ink::line, !run.isDrawn);
    const bool differs = differs_[static_cast<std::size_t>(child.level - end_)];
    if (!carried || (!differs && !isFirst)) return;
    canvas_.svg.textOn(
        x, above + tierGap / 2 + 4, std::min(child.width, boxWidth_) - 4,
        uplinkText(topology(), child.level, run.first, run.last),
        {.size = 11, .bold = own.has_value(), .color = own ? unlikeInk(topology(), child.level) : ink::black});
    if (own) canvas_.named.emplace(child.level, run.first);
  }

  /// Hosts below their switch, hanging on a line as the units of a rack.
  void rows(const Item& one, double y) {
    const double rail = one.x + 6, left = one.x + indent;
    y += 8;
    canvas_.svg.line(rail, y - 8, rail, y + rowStep * static_cast<double>(one.hosts.size() - 1) + rowHeight / 2, 1.5,
                     ink::line);
    for (const Stretch& run : one.hosts) {
      const Box box{left, y, one.width - indent, rowHeight};
      const std::optional<double> own = run.isDrawn ? ownUplink(topology(), 0, run.first) : std::nullopt;
      canvas_.svg.line(rail, y + rowHeight / 2, left, y + rowHeight / 2,
                       run.isDrawn ? lineWidth(canvas_, topology().uplink(0, run.first)) : 1,
                       own ? unlikeInk(topology(), 0) : ink::line, !run.isDrawn);
      row(run, box, own);
      y += rowStep;
    }
    bottom_ = std::max(bottom_, y - rowStep + rowHeight);
  }

  void row(const Stretch& run, const Box& box, const std::optional<double>& own) {
    const auto names = namesOf(topology(), 0, run.first, run.last);
    canvas_.svg.open(run.isDrawn ? std::string() : hostsFor(names, 600, 12));
    canvas_.svg.box(box, {run.isDrawn ? fillOf(topology(), 0) : std::string_view("#f4f4f4"),
                          own ? unlikeInk(topology(), 0) : ink::grey, !run.isDrawn});
    double room = box.width - 2 * pad;
    const double y = box.y + 13;
    if (hostsDiffer_) {
      const std::string speed = speedOf(run);
      const TextStyle style{small, own.has_value(), own ? unlikeInk(topology(), 0) : ink::grey, Anchor::end};
      if (run.isDrawn) room -= canvas_.svg.text(box.right() - pad, y, room * 0.62, speed, style) + 4;
      if (own) canvas_.named.emplace(0, run.first);
    }
    canvas_.svg.text(box.x + pad, y, room, rowName(run), {.size = small, .bold = own.has_value()});
    canvas_.svg.close();
  }

  Canvas& canvas_;
  int top_, end_, next_ = 0;   // levels: of the box at the top, and of the lowest boxes
  std::vector<bool> differs_;  // whether uplinks of a level do, from end_ on
  bool hasRows_ = false, hostsDiffer_ = false;
  double y_ = 0, boxWidth_ = 118, bottom_ = 0;
};

}  // namespace

double drawTree(Canvas& canvas, int level, std::uint32_t group, double top, int& next) {
  Tree tree(canvas, level);
  const double bottom = tree.draw(group, top);
  next = tree.next();
  return bottom;
}

}  // namespace tacc
