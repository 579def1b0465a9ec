#include "drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "topology/host_list.hpp"
#include "topology/tree_text.hpp"
#include "topology/units.hpp"

namespace tacc {
namespace {

constexpr double margin = 24, captionWidth = 236, boxWidth = 104, boxHeight = 46, gap = 12, levelHeight = 104;
constexpr double hostHeight = 20, headHeight = 64;
constexpr std::size_t mostAbreast = 16;
/// By depth below the root: calm fills with enough contrast for black text, in print too.
constexpr std::array<std::string_view, 5> fills = {"#cfe3f5", "#d9efd9", "#fdeccd", "#eadff2", "#f3dede"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

/// Short enough for a box: the middle gives way.
std::string fitted(std::string_view text, std::size_t room) {
  if (text.size() <= room) return std::string(text);
  const std::size_t head = (room - 2) * 2 / 3;
  return fmt::format("{}..{}", text.substr(0, head), text.substr(text.size() - (room - 2 - head)));
}

/// What is drawn at one place: a group, or several that are left out.
struct Item {
  int level = 0;
  std::uint32_t group = 0;
  std::uint32_t leftOut = 0;  // above 0: stands for so many groups from `group` on
  double x = 0, width = 0;    // of the whole subtree
  std::vector<Item> children;
};

class Drawing {
 public:
  explicit Drawing(const Topology& topology) : topology_(topology), lowest_(topology.levels() > 2 ? 1 : 0) {}

  std::string draw() {
    Item root = itemOf(topology_.root(), 0, true);
    if (widthOf(root) > mostAbreast) root = itemOf(topology_.root(), 0, false);
    if (topology_.hosts() == 0) root.width = boxWidth;
    place(root, margin + captionWidth);
    const double width = std::max(margin * 2 + captionWidth + root.width, 720.0);
    const double height =
        headHeight + margin + levelHeight * (topology_.root() - lowest_) + boxHeight + hostHeight + 40;
    head(width, height);
    for (int level = topology_.root(); level >= lowest_; --level) caption(level);
    item(root, nullptr);
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  auto out() { return std::back_inserter(text_); }
  double top(int level) const { return headHeight + margin + levelHeight * (topology_.root() - level); }

  /// How many boxes stand side by side at the lowest level.
  static std::size_t widthOf(const Item& item) {
    std::size_t width = 0;
    for (const Item& child : item.children) width += widthOf(child);
    return std::max<std::size_t>(width, 1);
  }

  /// `all`: what is inside of every group is drawn; else of the first one.
  Item itemOf(int level, std::uint32_t group, bool all) const {
    Item item{level, group, 0, 0, 0, {}};
    if (level == lowest_ || topology_.hosts() == 0) return item;
    const LeafRange hosts = topology_.hostsOf(level, group);
    const std::uint32_t first = topology_.groupOf(level - 1, hosts.first);
    const std::uint32_t end = topology_.groupOf(level - 1, hosts.last - 1) + 1;
    // The higher the level, the fewer are drawn below it: each brings all its own with it.
    const std::uint32_t most = level - lowest_ == 1 ? (topology_.root() == level ? 10 : 4) : 4;
    const std::uint32_t ahead = end - first > most ? most - 2 : end - first;
    for (std::uint32_t g = first; g < first + ahead; ++g)
      item.children.push_back(g == first || all ? itemOf(level - 1, g, all) : Item{level - 1, g, 0, 0, 0, {}});
    if (end - first > most) {
      item.children.push_back({level - 1, first + ahead, end - first - ahead - 1, 0, 0, {}});
      item.children.push_back(all ? itemOf(level - 1, end - 1, all) : Item{level - 1, end - 1, 0, 0, 0, {}});
    }
    return item;
  }

  void place(Item& item, double x) const {
    item.x = x;
    double at = x;
    for (Item& child : item.children) {
      place(child, at);
      at += child.width + gap;
    }
    item.width = std::max(item.children.empty() ? 0.0 : at - gap - x, boxWidth);
  }

  void head(double width, double height) {
    fmt::format_to(out(),
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
                   "height=\"{1:.0f}\" "
                   "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n",
                   width, height);
    const std::string title = topology_.name().empty() ? "Topology" : topology_.name();
    fmt::format_to(out(), "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", escaped(title));
    fmt::format_to(out(), "<text x=\"{:.0f}\" y=\"34\" font-size=\"20\" font-weight=\"bold\">{}</text>\n", margin,
                   escaped(title));
    fmt::format_to(out(), "<text x=\"{:.0f}\" y=\"54\" fill=\"#555\">{} hosts, {} levels, digest {}</text>\n", margin,
                   topology_.hosts(), topology_.levels(), digestText(topology_));
  }

  void line(double x, double y, std::string_view style, const std::string& words) {
    fmt::format_to(out(), "<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(words));
  }

  /// On the left: what a level is and what it costs.
  void caption(int level) {
    const Level& what = topology_.level(level);
    double y = top(level) + 14;
    line(margin, y, "font-weight=\"bold\"", fitted(fmt::format("{} ({})", what.name, topology_.groups(level)), 34));
    std::string cost;
    if (what.alpha) cost += formatLatency(*what.alpha);
    if (what.bandwidth) cost += (cost.empty() ? "" : ", ") + formatBandwidth(*what.bandwidth) + " a stream";
    if (!cost.empty()) line(margin, y += 16, "fill=\"#333\"", cost);
    if (what.uplink) line(margin, y += 16, "fill=\"#333\"", "uplink " + formatBandwidth(*what.uplink));
    if (what.wiring != Wiring::tree) {
      line(margin, y += 16, "fill=\"#333\"",
           fmt::format("{}{}", nameOf(what.wiring), what.dimensions.empty() ? "" : " " + what.dimensionsText()));
    }
  }

  void item(const Item& one, const Item* parent) {
    const double x = one.x + (one.width - boxWidth) / 2, y = top(one.level), middle = one.x + one.width / 2;
    if (parent != nullptr) {
      const double from = parent->x + parent->width / 2, below = top(parent->level) + boxHeight;
      fmt::format_to(out(), "<path d=\"M{:.1f} {:.1f} V{:.1f} H{:.1f} V{:.1f}\" fill=\"none\" stroke=\"#888\"/>\n",
                     from, below, below + (y - below) / 2, middle, y);
    }
    if (one.leftOut > 0) {
      line(middle, y + 20, "text-anchor=\"middle\" font-size=\"20\"", "...");
      line(middle, y + 38, "text-anchor=\"middle\" fill=\"#555\"", fmt::format("{} more", one.leftOut));
      return;
    }
    const LeafRange hosts = topology_.hosts() == 0 ? LeafRange() : topology_.hostsOf(one.level, one.group);
    const std::span<const std::string> names = std::span(topology_.hostNames()).subspan(hosts.first, hosts.size());
    fmt::format_to(out(), "<g><title>{}</title>\n", escaped(someHosts(names)));
    fmt::format_to(
        out(),
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" fill=\"{}\" stroke=\"#555\"/>\n",
        x, y, boxWidth, boxHeight, fills[static_cast<std::size_t>(topology_.root() - one.level) % fills.size()]);
    std::string name =
        one.level == topology_.root() ? topology_.level(one.level).name : topology_.groupName(one.level, one.group);
    if (name.empty()) name = fmt::format("{}", one.group);
    line(middle, y + 19, "text-anchor=\"middle\" font-weight=\"bold\"", fitted(name, 15));
    line(middle, y + 36, "text-anchor=\"middle\" fill=\"#333\"",
         one.level == 0 ? "host" : fmt::format("{} host{}", hosts.size(), hosts.size() == 1 ? "" : "s"));
    text_ += "</g>\n";
    if (one.level == lowest_ && one.level > 0) {
      line(middle, y + boxHeight + 16, "text-anchor=\"middle\" font-size=\"10\" fill=\"#333\"",
           fitted(foldHosts(names), 19));
    }
    for (const Item& child : one.children) item(child, &one);
  }

  const Topology& topology_;
  int lowest_;  // drawn as boxes
  std::string text_;
};

}  // namespace

std::string drawing(const Topology& topology) { return Drawing(topology).draw(); }

}  // namespace tacc
