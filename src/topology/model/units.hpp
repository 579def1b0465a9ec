// Latencies and bandwidths as people write them: "1.5 us", "12.5 GB/s", "100 Gbit/s".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tacc {

/// Seconds, above 0 and up to 1000: a number with the unit s, ms, us or ns. Nothing for other text.
std::optional<double> parseLatency(std::string_view text);
inline constexpr std::string_view latencyExample = "a time above 0 such as \"1.5 us\" (ns, us, ms, s)";

/// Bytes a second, from 1 to 1e18: a number with B/s, kB/s, MB/s, GB/s, TB/s (powers of 1000), KiB/s, MiB/s, GiB/s, or
/// bit/s, kbit/s, Mbit/s, Gbit/s. Nothing for other text.
std::optional<double> parseBandwidth(std::string_view text);
inline constexpr std::string_view bandwidthExample = "a speed above 0 such as \"12.5 GB/s\" or \"100 Gbit/s\"";

/// Bytes: a number with B, kB, MB, GB or KiB, MiB, GiB.
std::optional<double> parseBytes(std::string_view text);

/// Text that parses to exactly the same number.
std::string formatLatency(double seconds);
std::string formatBandwidth(double bytesPerSecond);
std::string formatBytes(double bytes);

/// For people to read: four digits, "6.818 GB/s".
std::string showBandwidth(double bytesPerSecond);

}  // namespace tacc
