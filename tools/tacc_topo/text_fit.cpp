#include "text_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "topology/model/host_list.hpp"

namespace tacc {
namespace {

/// Thousandths of the font's size, from ' ' to '~': the wider one of DejaVu Sans and Helvetica (and Arial).
using Widths = std::array<std::uint16_t, 95>;
constexpr Widths plainWidths = {318,  401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337,
                                637,  637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 556,
                                1015, 685, 687, 722, 771, 667, 611, 778, 752, 295, 500, 667, 558, 863, 749, 788,
                                667,  788, 722, 667, 611, 732, 685, 989, 686, 667, 686, 391, 337, 391, 838, 500,
                                500,  613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612,
                                635,  635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838};
constexpr Widths boldWidths = {349,  457, 521, 838, 696, 1002, 873, 307,  458, 458, 523, 838, 380, 416,  380, 366,
                               696,  696, 696, 696, 696, 696,  696, 696,  696, 696, 400, 400, 838, 838,  838, 611,
                               1000, 774, 763, 734, 831, 684,  684, 821,  837, 373, 556, 775, 638, 996,  837, 851,
                               733,  851, 771, 721, 683, 813,  774, 1104, 771, 725, 726, 458, 366, 458,  838, 500,
                               500,  675, 716, 593, 716, 679,  436, 716,  712, 343, 343, 666, 343, 1042, 712, 688,
                               716,  716, 494, 596, 479, 712,  652, 924,  646, 652, 583, 712, 366, 712,  838};
constexpr std::uint16_t elsewhere = 1600;  // letters beyond ASCII: as wide as the widest of Latin and Chinese
constexpr std::string_view gapMark = "…";
constexpr std::uint16_t gapWidth = 1000;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

double fourDigits(double value) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  // Divided where the unit is a fraction, so that 0.0123 comes out as written and not as 0.012300000000000002.
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

}  // namespace

double textWidth(std::string_view text, double size, bool bold) {
  std::uint64_t thousandths = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with(gapMark)) {
      thousandths += gapWidth;
      i += gapMark.size() - 1;
    } else if (c >= ' ' && c <= '~') {
      thousandths += (bold ? boldWidths : plainWidths)[static_cast<std::size_t>(c - ' ')];
    } else if (!continues(c)) {
      thousandths += elsewhere;
    }
  }
  return static_cast<double>(thousandths) * size / 1000;
}

std::string shortened(std::string_view text, double room, double size, bool bold) {
  if (textWidth(text, size, bold) <= room) return std::string(text);
  std::vector<std::size_t> starts;  // of the letters
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!continues(text[i])) starts.push_back(i);
  }
  starts.push_back(text.size());
  const std::size_t letters = starts.size() - 1;
  const double left = room - textWidth(gapMark, size, bold);
  // How many letters stay. What is not needed is at most the whole text, whose parts are measured from their ends.
  std::size_t head = 0, tail = 0;
  double used = 0;
  const auto width = [&](std::size_t letter) {
    return textWidth(text.substr(starts[letter], starts[letter + 1] - starts[letter]), size, bold);
  };
  while (head + tail < letters) {
    const bool atHead = head <= tail;  // names that count differ at their end
    const double more = width(atHead ? head : letters - 1 - tail);
    if (used + more > left) break;
    used += more;
    ++(atHead ? head : tail);
  }
  if (head == 0) return textWidth(gapMark, size, bold) <= room ? std::string(gapMark) : std::string();
  return fmt::format("{}{}{}", text.substr(0, starts[head]), gapMark, text.substr(starts[letters - tail]));
}

std::string hostsFor(std::span<const std::string> names, double room, double size, bool bold) {
  if (names.empty()) return "";
  const auto fits = [&](const std::string& text) { return textWidth(text, size, bold) <= room; };
  if (std::string folded = foldHosts(names); fits(folded) || names.size() == 1)
    return shortened(folded, room, size, bold);
  std::string ends = fmt::format("{} {} {}", names.front(), gapMark, names.back());
  if (fits(ends)) return ends;
  const double half = (room - textWidth(fmt::format(" {} ", gapMark), size, bold)) / 2;
  return fmt::format("{} {} {}", shortened(names.front(), half, size, bold), gapMark,
                     shortened(names.back(), half, size, bold));
}

std::string shortSpeed(double bytesPerSecond) {
  for (const auto& [unit, name] :
       {std::pair(1e12, "TB/s"), std::pair(1e9, "GB/s"), std::pair(1e6, "MB/s"), std::pair(1e3, "kB/s")}) {
    if (bytesPerSecond >= unit * 0.99995) return fmt::format("{} {}", fourDigits(bytesPerSecond / unit), name);
  }
  return fmt::format("{} B/s", fourDigits(bytesPerSecond));
}

std::string shortLatency(double seconds) {
  for (const auto& [unit, name] : {std::pair(1.0, "s"), std::pair(1e3, "ms"), std::pair(1e6, "us")}) {
    if (seconds * unit >= 0.99995) return fmt::format("{} {}", fourDigits(seconds * unit), name);
  }
  return fmt::format("{} ns", fourDigits(seconds * 1e9));
}

std::string thousands(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string counted(std::uint64_t count, std::string_view what) {
  const std::string digits = thousands(count);
  if (count == 1) return fmt::format("{} {}", digits, what);
  if (!what.empty() && what.front() >= '0' && what.front() <= '9')
    return fmt::format("{} x {}", digits, what);  // "2 blocks"
  const bool hisses = what.ends_with("ch") || what.ends_with("sh") || what.ends_with("ss") || what.ends_with('x');
  if (what.ends_with('s') && !hisses) return fmt::format("{} {}", digits, what);  // chassis; a plural
  return fmt::format("{} {}{}", digits, what, hisses ? "es" : "s");
}

}  // namespace tacc
