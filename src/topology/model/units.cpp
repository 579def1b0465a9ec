#include "topology/model/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <span>

namespace tacc {
namespace {

/// One of both is 1, and both are whole: "1.5 us" becomes 1.5 / 1e6, which rounds as the literal 1.5e-6 does.
struct UnitName {
  std::string_view name;
  double times, over;
  bool isWritten;  // formatted numbers use it
};

constexpr UnitName times[] = {{"s", 1, 1, true}, {"ms", 1, 1e3, true}, {"us", 1, 1e6, true}, {"ns", 1, 1e9, true}};
constexpr UnitName speeds[] = {
    {"TB/s", 1e12, 1, false},     {"GB/s", 1e9, 1, true},       {"MB/s", 1e6, 1, true},
    {"kB/s", 1e3, 1, true},       {"B/s", 1, 1, true},          {"GiB/s", 1073741824, 1, false},
    {"MiB/s", 1048576, 1, false}, {"KiB/s", 1024, 1, false},    {"Gbit/s", 1.25e8, 1, false},
    {"Mbit/s", 1.25e5, 1, false}, {"kbit/s", 1.25e2, 1, false}, {"bit/s", 1, 8, false}};
constexpr UnitName sizes[] = {
    {"GiB", 1073741824, 1, true}, {"MiB", 1048576, 1, true}, {"KiB", 1024, 1, true}, {"B", 1, 1, true},
    {"GB", 1e9, 1, false},        {"MB", 1e6, 1, false},     {"kB", 1e3, 1, false}};

std::optional<double> parse(std::string_view text, std::span<const UnitName> units, double least, double most) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  for (const UnitName& unit : units) {
    if (unit.name != text) continue;
    const double value = number * unit.times / unit.over;
    if (value >= least && value <= most) return value;  // also refuses "nan"
  }
  return std::nullopt;
}

/// The largest unit that leaves at least 1 before the point.
const UnitName& unitFor(double value, std::span<const UnitName> units) {
  const UnitName* chosen = &units.back();
  for (const UnitName& unit : units) {
    if (unit.isWritten) chosen = &unit;
    if (unit.isWritten && value * unit.over / unit.times >= 0.9999999) break;
  }
  return *chosen;
}

std::string format(double value, std::span<const UnitName> units,
                   std::optional<double> (*parseBack)(std::string_view)) {
  const UnitName& chosen = unitFor(value, units);
  std::string text;
  for (int digits = 12; digits <= 17; ++digits) {
    text = fmt::format("{:.{}g} {}", value * chosen.over / chosen.times, digits, chosen.name);
    if (parseBack(text) == value) return text;
  }
  for (const UnitName& unit : units) {
    if (unit.times == 1 && unit.over == 1) text = fmt::format("{} {}", value, unit.name);
  }
  return text;
}

}  // namespace

std::optional<double> parseLatency(std::string_view text) { return parse(text, times, 1e-15, 1e3); }
std::optional<double> parseBandwidth(std::string_view text) { return parse(text, speeds, 1, 1e18); }
std::optional<double> parseBytes(std::string_view text) { return parse(text, sizes, 1, 1e15); }

std::string formatLatency(double seconds) { return format(seconds, times, parseLatency); }
std::string formatBandwidth(double bytesPerSecond) { return format(bytesPerSecond, speeds, parseBandwidth); }
std::string showBandwidth(double bytesPerSecond) {
  // 999.96 would be shown as 1000: it belongs to the next unit.
  const UnitName& unit = unitFor(bytesPerSecond * (1 + 5e-5), speeds);
  const double number = bytesPerSecond * unit.over / unit.times;
  return number < 1e4 ? fmt::format("{:.4g} {}", number, unit.name) : fmt::format("{:.0f} {}", number, unit.name);
}
std::string formatBytes(double bytes) { return format(bytes, sizes, parseBytes); }

}  // namespace tacc
