// Words for a place of a certain width: how wide they are, and how they are made to fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacc {

/// Of UTF-8 in the widest of the fonts that "sans-serif" usually is; in the others it is narrower.
/// `size`: of the font, in the unit of the result.
double textWidth(std::string_view text, double size, bool bold = false);

/// The text itself where it fits into `room`, else as much of its beginning and its end as fits, with "…" between;
/// empty where not even that fits.
std::string shortened(std::string_view text, double room, double size, bool bold = false);

/// These names folded ("node[001-018]"); where that does not fit, the first and the last one ("node001 … node977").
std::string hostsFor(std::span<const std::string> names, double room, double size, bool bold = false);

/// A speed for people: four digits.
std::string shortSpeed(double bytesPerSecond);
/// A time, likewise.
std::string shortLatency(double seconds);

/// "40,960".
std::string thousands(std::uint64_t count);
/// "1 host", "2 hosts", "40,960 hosts"; "2 switches".
std::string counted(std::uint64_t count, std::string_view what);

}  // namespace tacc
