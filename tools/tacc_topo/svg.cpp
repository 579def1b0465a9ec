#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "text_fit.hpp"

namespace tacc {
namespace {

/// Tenths of a unit are finer than any screen.
struct Number {
  double value;
};

}  // namespace
}  // namespace tacc

template <>
struct fmt::formatter<tacc::Number> : fmt::formatter<double> {
  template <class Context>
  auto format(const tacc::Number& number, Context& context) const {
    const double tenths = std::round(number.value * 10);
    return fmt::format_to(context.out(), "{}", tenths == 0 ? 0.0 : tenths / 10);
  }
};

namespace tacc {
namespace {

Number n(double value) { return {value}; }

std::string_view nameOf(Anchor anchor) {
  return anchor == Anchor::start ? "" : anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
}

std::string_view dashes(bool dashed) { return dashed ? " stroke-dasharray=\"4 3\"" : ""; }

}  // namespace

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
      result += (c >= 0 && c < ' ') || c == 0x7f ? '?' : c;
  }
  return result;
}

void Svg::reach(double right, double bottom) {
  right_ = std::max(right_, right);
  bottom_ = std::max(bottom_, bottom);
}

void Svg::open(std::string_view title) {
  body_ += "<g>";
  if (!title.empty()) fmt::format_to(std::back_inserter(body_), "<title>{}</title>", escaped(title));
  body_ += '\n';
}

void Svg::close() { body_ += "</g>\n"; }

void Svg::box(const Box& box, const BoxStyle& style) {
  fmt::format_to(std::back_inserter(body_),
                 "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"{}\"{}/>\n",
                 n(box.x), n(box.y), n(box.width), n(box.height), style.fill, style.stroke, dashes(style.dashed));
  reach(box.right(), box.bottom());
}

void Svg::circle(double x, double y, double radius, std::string_view fill, std::string_view stroke) {
  fmt::format_to(std::back_inserter(body_), "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", n(x),
                 n(y), n(radius), fill, stroke);
  reach(x + radius, y + radius);
}

void Svg::line(double x1, double y1, double x2, double y2, double width, std::string_view color, bool dashed) {
  fmt::format_to(std::back_inserter(body_),
                 "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", n(x1), n(y1),
                 n(x2), n(y2), color, n(width), dashes(dashed));
  reach(std::max(x1, x2) + width / 2, std::max(y1, y2) + width / 2);
}

void Svg::path(std::string_view data, const Box& within, double width, std::string_view color, bool dashed) {
  fmt::format_to(std::back_inserter(body_), "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                 data, color, n(width), dashes(dashed));
  reach(within.right() + width / 2, within.bottom() + width / 2);
}

double Svg::text(double x, double y, double room, std::string_view words, const TextStyle& style) {
  const std::string fitting = shortened(words, room, style.size, style.bold);
  const double width = textWidth(fitting, style.size, style.bold);
  if (fitting.empty()) return 0;
  fmt::format_to(std::back_inserter(body_), "<text x=\"{}\" y=\"{}\"{}", n(x), n(y), nameOf(style.anchor));
  if (style.size != 12) fmt::format_to(std::back_inserter(body_), " font-size=\"{}\"", n(style.size));
  if (style.bold) body_ += " font-weight=\"bold\"";
  if (style.color != ink::black) fmt::format_to(std::back_inserter(body_), " fill=\"{}\"", style.color);
  body_ += '>';
  if (fitting != words) fmt::format_to(std::back_inserter(body_), "<title>{}</title>", escaped(words));
  fmt::format_to(std::back_inserter(body_), "{}</text>\n", escaped(fitting));
  const double left = style.anchor == Anchor::start ? x : style.anchor == Anchor::middle ? x - width / 2 : x - width;
  reach(left + width, y + style.size / 4);
  return width;
}

void Svg::textOn(double x, double y, double room, std::string_view words, const TextStyle& style) {
  const std::string fitting = shortened(words, room, style.size, style.bold);
  const double width = textWidth(fitting, style.size, style.bold);
  if (fitting.empty()) return;
  open("");
  box({x - width / 2 - 2, y - style.size, width + 4, style.size * 1.3}, {"white", ink::none});
  TextStyle middle = style;
  middle.anchor = Anchor::middle;
  text(x, y, room, words, middle);
  close();
}

std::string Svg::file(std::string_view title, double margin) const {
  const double width = std::ceil(right_ + margin), height = std::ceil(bottom_ + margin);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n<title>{3}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{4}</svg>\n",
      n(width), n(height), ink::black, escaped(title), body_);
}

}  // namespace tacc
