#include "core/parse.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <system_error>
#include <vector>

namespace tacc {
namespace {

/// Reads a number from the front of `text` and removes it there. from_chars takes no sign '+', no blanks and no locale.
template <class Number>
std::optional<Number> takeNumber(std::string_view& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // row[j]: edits from the part of a seen so far to the first j of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::size_t> parseSize(std::string_view text) {
  const std::optional<std::size_t> number = takeNumber<std::size_t>(text);
  if (!number || text.size() > 1) return std::nullopt;
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.front()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        return std::nullopt;
    }
  }
  if (*number > (std::numeric_limits<std::size_t>::max() >> shift)) return std::nullopt;
  return *number << shift;
}

std::optional<double> parseSeconds(std::string_view text) {
  const std::optional<double> number = takeNumber<double>(text);
  if (!number) return std::nullopt;
  double unit = 1.0;
  if (text == "ms") {
    unit = 1e-3;
  } else if (text == "us") {
    unit = 1e-6;
  } else if (!text.empty() && text != "s") {
    return std::nullopt;
  }
  const double seconds = *number * unit;
  if (!(seconds >= 0.0 && seconds <= longestSeconds)) return std::nullopt;  // also refuses "nan"
  return seconds;
}

std::optional<std::int64_t> parseInteger(std::string_view text, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> number = takeNumber<std::int64_t>(text);
  if (!number || !text.empty() || *number < least || *number > most) return std::nullopt;
  return number;
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  std::size_t fewest = std::max<std::size_t>(2, text.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = editDistance(text, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

std::string listOf(std::span<const std::string_view> items) {
  std::string list;
  for (const std::string_view item : items) {
    if (!list.empty()) list += ", ";
    list += item;
  }
  return list;
}

std::string shownText(std::string_view text) {
  constexpr std::size_t room = 60;
  std::string shown(text.substr(0, room));
  for (char& c : shown) c = c < ' ' || c > '~' ? '?' : c;
  if (text.size() > room) shown += "...";
  return shown;
}

}  // namespace tacc
