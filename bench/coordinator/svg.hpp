// The pieces that drawings are made of.
#pragma once

#include <cstddef>
#include <string>

namespace tacc::bench {

/// The first line of a drawing, on white.
std::string svgBegin(double width, double height);
inline constexpr const char* svgEnd = "</svg>\n";

/// `text` is escaped; `more` are attributes.
std::string textAt(double x, double y, const char* anchor, const std::string& text, const char* more = "");
inline constexpr const char* titleFont = " font-size=\"17\" font-weight=\"bold\"";
std::string line(double x1, double y1, double x2, double y2, const char* color);

/// Distinguishable also by those who do not see all colours; tacc has the first.
const char* seriesColor(std::size_t index);

}  // namespace tacc::bench
