// An SVG file read as strictly as a browser does, and where things stand in it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacc::test {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // of this element itself, as people read it
  std::vector<std::unique_ptr<Element>> children;

  double number(const std::string& attribute) const;
  /// This and all elements below with a name.
  std::vector<const Element*> all(std::string_view name) const;
};

/// Throws std::runtime_error for what is no XML: a tag that is not closed, an attribute twice, a character that must be
/// escaped, bytes that are no UTF-8.
std::unique_ptr<Element> readXml(std::string_view xml);

/// Where something stands.
struct Area {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool holds(const Area& inner, double slack = 0.2) const;
  bool touches(const Area& other, double slack = 0.2) const;
};
Area areaOf(const Element& element);  // of a rect, circle, line or text

/// What every picture must be, as sentences about what is wrong: everything lies on the canvas, boxes side by side do
/// not overlap, boxes in boxes and words lie inside of theirs, and words do not run over words.
std::vector<std::string> faultsOf(const Element& svg);

}  // namespace tacc::test
