// Numbers as people write them: sizes, durations, integers; and text for messages. What reads a number returns nothing
// for text that is not wholly such a number, so that the caller, who knows where the text came from, writes the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tacc {

/// Bytes: digits with at most one suffix K, M or G (either case; powers of 1024): "100M" is 104,857,600. Nothing on
/// overflow.
std::optional<std::size_t> parseSize(std::string_view text);

/// Seconds: a decimal number, alone or with the unit s, ms or us: "30", "0.5", "250ms". From 0 to longestSeconds.
std::optional<double> parseSeconds(std::string_view text);
inline constexpr double longestSeconds = 1e9;  // 31 years; in nanoseconds it still fits in 64 bits

/// A whole number in decimal, from `least` to `most`.
std::optional<std::int64_t> parseInteger(std::string_view text, std::int64_t least, std::int64_t most);

/// The candidate with the fewest edits (insert, delete, replace a character) from `text`, when there are at most
/// max(2, a third of the text) of them; else empty. For "did you mean".
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

/// "a, b, c".
std::string listOf(std::span<const std::string_view> items);

/// Text from a file for messages: at most 60 characters, printable.
std::string shownText(std::string_view text);

}  // namespace tacc
