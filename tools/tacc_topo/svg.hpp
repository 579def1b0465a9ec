// An SVG file that needs nothing else: boxes, lines and words, and how large the whole becomes.
#pragma once

#include <string>
#include <string_view>

namespace tacc {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return x + width / 2; }
};

enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12;
  bool bold = false;
  std::string_view color = "#1a1a1a";
  Anchor anchor = Anchor::start;
};

namespace ink {
inline constexpr std::string_view black = "#1a1a1a", grey = "#555", line = "#777", pale = "#bbb", none = "none";
/// What is not as the others are.
inline constexpr std::string_view unlike = "#b3261e";
}  // namespace ink

/// Keeps what was drawn as text. Everything counts for the size, so nothing is cut off.
class Svg {
 public:
  /// A part that is read as one, with a name that programs show where somebody points; empty: it has none.
  void open(std::string_view title);
  void close();

  struct BoxStyle {
    std::string_view fill = ink::none, stroke = ink::grey;
    bool dashed = false;
  };
  void box(const Box& box, const BoxStyle& style);
  void circle(double x, double y, double radius, std::string_view fill, std::string_view stroke);
  void line(double x1, double y1, double x2, double y2, double width, std::string_view color, bool dashed = false);
  /// `data` as in SVG; `within`: where it runs.
  void path(std::string_view data, const Box& within, double width, std::string_view color, bool dashed = false);

  /// One line of words, whose base line is `y`, at most `room` wide: longer ones are shortened and then have the whole
  /// as their title. Returns the width.
  double text(double x, double y, double room, std::string_view words, const TextStyle& style = {});
  /// The same in the middle of a line that was drawn before, on a ground of its own.
  void textOn(double x, double y, double room, std::string_view words, const TextStyle& style);

  double right() const { return right_; }
  double bottom() const { return bottom_; }

  /// The file, with `margin` beyond what was drawn.
  std::string file(std::string_view title, double margin) const;

 private:
  void reach(double right, double bottom);

  std::string body_;
  double right_ = 0, bottom_ = 0;
};

/// With the characters that XML wants written otherwise; what XML cannot hold is '?'.
std::string escaped(std::string_view text);

}  // namespace tacc
