// Text files that others wrote: read whole, with a bound, and cut into lines and words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacc {

inline constexpr std::size_t largestTextFile = std::size_t{64} << 20;

inline constexpr double textPatience = 30;  // seconds

/// The contents; of a pipe all that its writers give, each piece of which is awaited for `patience` seconds. Throws
/// Error: taccSystemError if it cannot be read, taccInvalidArgument if it is larger than largestTextFile.
std::string readText(const std::string& path, double patience = textPatience);

/// Nothing if there is no such file or it may not be read.
std::optional<std::string> readTextIfThere(const std::string& path);

/// Whether all of it is UTF-8.
bool isUtf8(std::string_view text) noexcept;

/// The lines, without their ends. Views into `text`.
std::vector<std::string_view> linesOf(std::string_view text);

/// The words between blanks and tabs. Views into `line`.
std::vector<std::string_view> wordsOf(std::string_view line);

}  // namespace tacc
