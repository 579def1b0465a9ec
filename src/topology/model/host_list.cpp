#include "topology/model/host_list.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/parse.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostDigits = 18;  // fits in 64 bits

bool isDigit(char c) noexcept { return c >= '0' && c <= '9'; }
bool isBlank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

struct Range {
  std::uint64_t first, last;
  std::size_t width;  // digits at least, filled with zeros
};

/// A part of a name: plain text, or all the numbers that may stand at this place.
struct Part {
  std::string_view text;
  std::vector<Range> ranges;  // empty: plain text
  std::size_t choices = 1;
};

[[noreturn]] void reject(std::string_view list, std::string_view why) {
  fail(taccInvalidArgument, "\"{}\" is no list of hosts: {}; right is, for instance, node[001-256],login1",
       shownText(list), why);
}

std::uint64_t numberOf(std::string_view digits, std::string_view list) {
  if (digits.empty() || digits.size() > mostDigits || !std::all_of(digits.begin(), digits.end(), isDigit)) {
    reject(list, fmt::format("\"{}\" in brackets is no number", shownText(digits)));
  }
  std::uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  return value;
}

std::size_t multiply(std::size_t a, std::uint64_t b, std::size_t most) {
  return a != 0 && b > most / a ? most + 1 : a * static_cast<std::size_t>(b);
}

Part bracketPart(std::string_view inside, std::string_view list, std::size_t most) {
  Part part;
  part.choices = 0;
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t end = std::min(inside.find(',', begin), inside.size());
    const std::string_view item = inside.substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    const std::string_view low = item.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : item.substr(dash + 1);
    const Range range{numberOf(low, list), numberOf(high, list), low.size()};
    if (range.first > range.last) reject(list, fmt::format("the range {} goes downward", shownText(item)));
    if (range.last - range.first >= most || part.choices + (range.last - range.first) >= most) {
      reject(list, fmt::format("it has more than {} hosts", most));
    }
    part.choices += static_cast<std::size_t>(range.last - range.first) + 1;
    part.ranges.push_back(range);
    begin = end + 1;
  }
  return part;
}

std::vector<Part> itemsOf(std::string_view item, std::string_view list, std::size_t most) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < item.size();) {
    if (item[i] == '[') {
      const std::size_t close = item.find(']', i);
      if (close == std::string_view::npos) reject(list, "a bracket is not closed");
      parts.push_back(bracketPart(item.substr(i + 1, close - i - 1), list, most));
      i = close + 1;
      continue;
    }
    if (item[i] == ']') reject(list, "a bracket is not opened");
    const std::size_t end = std::min(item.find_first_of("[]", i), item.size());
    parts.push_back({item.substr(i, end - i), {}});
    i = end;
  }
  return parts;
}

std::string choiceOf(const Part& part, std::size_t choice) {
  for (const Range& range : part.ranges) {
    const std::size_t size = static_cast<std::size_t>(range.last - range.first) + 1;
    if (choice < size) return fmt::format("{:0{}}", range.first + choice, range.width);
    choice -= size;
  }
  return std::string(part.text);
}

void expandItem(std::string_view item, std::string_view list, std::size_t most, std::vector<std::string>& names) {
  const std::vector<Part> parts = itemsOf(item, list, most);
  std::size_t count = 1;
  for (const Part& part : parts) count = multiply(count, part.choices, most);
  if (count > most - std::min(most, names.size())) reject(list, fmt::format("it has more than {} hosts", most));
  for (std::size_t n = 0; n < count; ++n) {
    std::string name;
    std::size_t rest = n, weight = count;
    for (const Part& part : parts) {
      weight /= part.choices;
      name += choiceOf(part, rest / weight);
      rest %= weight;
    }
    if (!isHostName(name)) reject(list, fmt::format("\"{}\" is no name of a host", shownText(name)));
    names.push_back(std::move(name));
  }
}

/// A name as text, number, text, if it has a number that can be counted.
struct NumberedName {
  std::string_view before, digits, after;
  explicit NumberedName(std::string_view name) {
    std::size_t end = name.size();
    while (end > 0 && !isDigit(name[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && isDigit(name[begin - 1])) --begin;
    if (end - begin > mostDigits) begin = end = name.size();
    before = name.substr(0, begin);
    digits = name.substr(begin, end - begin);
    after = name.substr(end);
  }
  std::uint64_t number() const noexcept {
    std::uint64_t value = 0;
    for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
    return value;
  }
  bool hasZeros() const noexcept { return digits.size() > 1 && digits.front() == '0'; }
  bool sameBut(const NumberedName& other) const noexcept { return before == other.before && after == other.after; }
  /// Whether this one is what a range that began with `first` counts to after `previous`.
  bool follows(const NumberedName& previous, const NumberedName& first) const noexcept {
    if (number() != previous.number() + 1) return false;
    return digits.size() == first.digits.size() ||
           (digits.size() > first.digits.size() && !hasZeros() && digits.size() >= previous.digits.size());
  }
};

}  // namespace

bool isHostName(std::string_view name) noexcept {
  constexpr std::string_view refused = ",[]\"";
  return !name.empty() && name.size() <= longestHostName && std::all_of(name.begin(), name.end(), [&](char c) {
    return c > ' ' && c <= '~' && refused.find(c) == std::string_view::npos;
  });
}

std::vector<std::string> expandHosts(std::string_view list, std::size_t most) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || (depth > 0 && i < list.size())) continue;
    std::string_view item = list.substr(begin, i - begin);
    while (!item.empty() && isBlank(item.front())) item.remove_prefix(1);
    while (!item.empty() && isBlank(item.back())) item.remove_suffix(1);
    if (item.empty()) reject(list, "a name is empty");
    expandItem(item, list, most, names);
    begin = i + 1;
  }
  return names;
}

std::string foldHosts(std::span<const std::string> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size();) {
    const NumberedName head(names[i]);
    std::string inside;
    std::size_t folded = i;
    while (folded < names.size() && !head.digits.empty()) {
      const NumberedName first(names[folded]);
      if (first.digits.empty() || !first.sameBut(head)) break;
      std::size_t next = folded + 1;
      for (NumberedName last = first; next < names.size(); ++next) {
        const NumberedName candidate(names[next]);
        if (candidate.digits.empty() || !candidate.sameBut(head) || !candidate.follows(last, first)) break;
        last = candidate;
      }
      inside += inside.empty() ? "" : ",";
      inside += first.digits;
      if (next - folded > 1) inside += fmt::format("-{}", NumberedName(names[next - 1]).digits);
      folded = next;
    }
    if (!list.empty()) list += ',';
    if (folded - i > 1) {
      fmt::format_to(std::back_inserter(list), "{}[{}]{}", head.before, inside, head.after);
      i = folded;
    } else {
      list += names[i++];
    }
  }
  return list;
}

std::string someHosts(std::span<const std::string> names) {
  constexpr std::size_t room = 80;
  std::string list = foldHosts(names);
  if (list.size() <= room) return list;
  std::size_t kept = names.size();
  while (kept > 1 && list.size() > room) {
    kept = std::min(kept / 2, std::size_t{64});
    list = foldHosts(names.first(kept));
  }
  return fmt::format("{} and {} more", list.substr(0, longestHostName), names.size() - kept);
}

bool naturallyLess(std::string_view a, std::string_view b) noexcept {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!isDigit(a[i]) || !isDigit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t endA = i, endB = j;
    while (endA < a.size() && isDigit(a[endA])) ++endA;
    while (endB < b.size() && isDigit(b[endB])) ++endB;
    if (endA - i != endB - j) return endA - i < endB - j;
    const int order = a.substr(i, endA - i).compare(b.substr(j, endB - j));
    if (order != 0) return order < 0;
    i = endA, j = endB;
  }
  if (a.size() - i != 0 || b.size() - j != 0) return a.size() - i == 0;
  return a < b;  // they differ in zeros only
}

std::optional<std::uint64_t> numberIn(std::string_view name) noexcept {
  const NumberedName parts(name);
  if (parts.digits.empty()) return std::nullopt;
  return parts.number();
}

}  // namespace tacc
