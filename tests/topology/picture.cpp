#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "tacc_topo/text_fit.hpp"

namespace tacc::test {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view xml) : xml_(xml) {}

  std::unique_ptr<Element> read() {
    checkUtf8();
    blanks();
    std::unique_ptr<Element> root = element();
    blanks();
    if (at_ != xml_.size()) wrong("text behind the root");
    return root;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    throw std::runtime_error(fmt::format("{} at {}: {}", what, at_, xml_.substr(at_, 60)));
  }
  bool takes(std::string_view token) {
    if (!xml_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!takes(token)) wrong(fmt::format("not \"{}\"", token));
  }
  void blanks() {
    while (at_ < xml_.size() && (xml_[at_] == ' ' || xml_[at_] == '\n')) ++at_;
  }
  void checkUtf8() const {
    for (std::size_t i = 0; i < xml_.size(); ++i) {
      const auto c = static_cast<unsigned char>(xml_[i]);
      if (c < ' ' && c != '\n') throw std::runtime_error("a control character");
      const std::size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 9;
      for (std::size_t j = 1; j <= more; ++j) {
        if (more == 9 || i + j >= xml_.size() || (static_cast<unsigned char>(xml_[i + j]) & 0xc0) != 0x80)
          throw std::runtime_error("bytes that are no UTF-8");
      }
      i += more;
    }
  }
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < xml_.size() &&
           (std::isalnum(static_cast<unsigned char>(xml_[at_])) != 0 || xml_[at_] == '-' || xml_[at_] == ':'))
      ++at_;
    if (at_ == begin) wrong("no name");
    return std::string(xml_.substr(begin, at_ - begin));
  }
  char character() {
    const char c = xml_[at_];
    if (c != '&') return ++at_, c;
    for (const auto& [entity, meaning] :
         {std::pair("&lt;", '<'), std::pair("&gt;", '>'), std::pair("&amp;", '&'), std::pair("&quot;", '"')}) {
      if (takes(entity)) return meaning;
    }
    wrong("an unknown entity");
  }
  std::unique_ptr<Element> element() {
    auto result = std::make_unique<Element>();
    need("<");
    result->name = name();
    while (blanks(), !takes("/>")) {
      if (takes(">")) {
        content(*result);
        return result;
      }
      const std::string attribute = name();
      need("=\"");
      std::string value;
      while (at_ < xml_.size() && xml_[at_] != '"') {
        if (xml_[at_] == '<') wrong("< in an attribute");
        value += character();
      }
      need("\"");
      if (!result->attributes.emplace(attribute, value).second) wrong("an attribute twice");
    }
    return result;
  }
  void content(Element& parent) {
    while (at_ < xml_.size()) {
      if (takes("</")) {
        need(parent.name);
        return need(">");
      }
      if (xml_[at_] == '<')
        parent.children.push_back(element());
      else
        parent.text += character();
    }
    wrong("the end inside of " + parent.name);
  }

  std::string_view xml_;
  std::size_t at_ = 0;
};

bool isShape(const Element& element) {
  return element.name == "rect" || element.name == "circle" || element.name == "line" || element.name == "text";
}

std::string shown(const Element& element) {
  std::string text = "<" + element.name;
  for (const auto& [name, value] : element.attributes) text += fmt::format(" {}={}", name, value);
  return text + "> " + element.text;
}

/// The box that a group draws: its first shape, if it is one.
const Element* boxOf(const Element& group) {
  for (const auto& child : group.children) {
    if (child->name == "title") continue;
    return child->name == "rect" ? child.get() : nullptr;
  }
  return nullptr;
}

class Faults {
 public:
  std::vector<std::string> of(const Element& svg) {
    const Area canvas{0, 0, svg.number("width"), svg.number("height")};
    walk(svg, canvas, nullptr);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::size_t j = i + 1; j < words_.size(); ++j) {
        if (areas_[i].touches(areas_[j], 0.5)) say("words run over words", *words_[i], words_[j]);
      }
    }
    return std::move(faults_);
  }

 private:
  void say(std::string_view what, const Element& element, const Element* other) {
    faults_.push_back(fmt::format("{}: {}; {}", what, shown(element), other == nullptr ? "" : shown(*other)));
  }

  void walk(const Element& parent, const Area& canvas, const Element* box) {
    std::vector<const Element*> boxes;
    for (const auto& child : parent.children) {
      if (isShape(*child)) {
        const Area area = areaOf(*child);
        if (!canvas.holds(area)) say("beyond the canvas", *child, nullptr);
        const bool mustBeInside = child->name == "text" || child->name == "circle";
        if (box != nullptr && child.get() != box && mustBeInside && !areaOf(*box).holds(area, 0.5))
          say("beyond its box", *child, box);
        if (child->name == "text") {
          words_.push_back(child.get());
          areas_.push_back(area);
        }
      }
      if (child->name != "g") continue;
      const Element* inner = boxOf(*child);
      if (inner != nullptr) {
        boxes.push_back(inner);
        if (box != nullptr && !areaOf(*box).holds(areaOf(*inner))) say("beyond the box around it", *inner, box);
      }
      walk(*child, canvas, inner != nullptr ? inner : box);
    }
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      for (std::size_t j = i + 1; j < boxes.size(); ++j) {
        if (areaOf(*boxes[i]).touches(areaOf(*boxes[j]))) say("boxes overlap", *boxes[i], boxes[j]);
      }
    }
  }

  std::vector<std::string> faults_;
  std::vector<const Element*> words_;
  std::vector<Area> areas_;
};

}  // namespace

double Element::number(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) throw std::runtime_error(fmt::format("{} has no {}", name, attribute));
  std::size_t end = 0;
  const double value = std::stod(found->second, &end);
  if (end != found->second.size()) throw std::runtime_error(found->second + " is no number");
  return value;
}

std::vector<const Element*> Element::all(std::string_view wanted) const {
  std::vector<const Element*> found;
  if (name == wanted) found.push_back(this);
  for (const auto& child : children) {
    const std::vector<const Element*> below = child->all(wanted);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::unique_ptr<Element> readXml(std::string_view xml) { return Reader(xml).read(); }

bool Area::holds(const Area& inner, double slack) const {
  return inner.left >= left - slack && inner.top >= top - slack && inner.right <= right + slack &&
         inner.bottom <= bottom + slack;
}

bool Area::touches(const Area& other, double slack) const {
  return left + slack < other.right && other.left + slack < right && top + slack < other.bottom &&
         other.top + slack < bottom;
}

Area areaOf(const Element& element) {
  const auto number = [&](const char* name) { return element.number(name); };
  const auto has = [&](const char* name) { return element.attributes.contains(name); };
  if (element.name == "rect") {
    const double x = has("x") ? number("x") : 0, y = has("y") ? number("y") : 0;
    return {x, y, x + number("width"), y + number("height")};
  }
  if (element.name == "circle") {
    const double r = number("r");
    return {number("cx") - r, number("cy") - r, number("cx") + r, number("cy") + r};
  }
  if (element.name == "line") {
    return {std::min(number("x1"), number("x2")), std::min(number("y1"), number("y2")),
            std::max(number("x1"), number("x2")), std::max(number("y1"), number("y2"))};
  }
  const double size = has("font-size") ? number("font-size") : 12;
  const double width = textWidth(element.text, size, has("font-weight"));
  const std::string anchor = has("text-anchor") ? element.attributes.at("text-anchor") : "start";
  const double left = number("x") - (anchor == "middle" ? width / 2 : anchor == "end" ? width : 0);
  return {left, number("y") - 0.75 * size, left + width, number("y") + 0.2 * size};
}

std::vector<std::string> faultsOf(const Element& svg) { return Faults().of(svg); }

}  // namespace tacc::test
