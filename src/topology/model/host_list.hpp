// Lists of hosts as clusters write them: "node[001-256],login1", "rack[0-3]node[0-7]". And the order of names that
// people expect: node2 before node10.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacc {

/// A list with more hosts is refused before it is expanded, whatever a file claims.
inline constexpr std::size_t mostHosts = std::size_t{1} << 20;
inline constexpr std::size_t longestHostName = 255;

/// 1 to 255 printable characters of ASCII, without blanks, commas, brackets and quotation marks: what a list can hold.
bool isHostName(std::string_view name) noexcept;

/// The names of a list, in its order, with repetitions. Names stand between commas; in brackets stand numbers and
/// ranges
/// ("[8-12,20]"), filled with zeros to the width of the range's first number. Throws Error (taccInvalidArgument) for
/// what is no list and for more than `most` names.
std::vector<std::string> expandHosts(std::string_view list, std::size_t most = mostHosts);

/// The shortest such list: expandHosts(foldHosts(names)) is `names`.
std::string foldHosts(std::span<const std::string> names);

/// foldHosts() for messages: cut after some 80 characters, with the number of names that are left out.
std::string someHosts(std::span<const std::string> names);

/// The order of names in which runs of digits count as numbers; a total order.
bool naturallyLess(std::string_view a, std::string_view b) noexcept;

/// The last run of digits in a name: 123 for vn000123; nothing if there is none or it has more than 18 digits.
std::optional<std::uint64_t> numberIn(std::string_view name) noexcept;

}  // namespace tacc
