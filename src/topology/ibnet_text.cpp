#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "topology/host_list.hpp"
#include "topology/ibnet.hpp"
#include "topology/text_file.hpp"

namespace tacc {
namespace {

/// Data of one lane in bytes/s: signalling rate times coding (8/10 up to QDR, 64/66 up to EDR; later rates are named
/// after their data), InfiniBand Architecture Specification volume 2.
struct Speed {
  std::string_view name;
  double lane;
};
constexpr std::array<Speed, 9> speeds = {{{"SDR", 0.25e9},
                                          {"DDR", 0.5e9},
                                          {"QDR", 1e9},
                                          {"FDR10", 1.25e9},
                                          {"FDR", 14.0625e9 * 64 / 66 / 8},
                                          {"EDR", 3.125e9},
                                          {"HDR", 6.25e9},
                                          {"NDR", 12.5e9},
                                          {"XDR", 25e9}}};

/// The text between the next two quotation marks, which are removed from the front with all before them.
std::optional<std::string_view> takeQuoted(std::string_view& text) {
  const std::size_t open = text.find('"');
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = text.find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  return inside;
}

/// "[12]" at the front, removed.
std::optional<std::int64_t> takePort(std::string_view& text) {
  if (text.empty() || text.front() != '[') return std::nullopt;
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(1, close - 1);
  text.remove_prefix(close + 1);
  return parseInteger(digits, 0, 65535);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : origin_(origin) {
    std::size_t number = 0;
    for (const std::string_view line : linesOf(text)) {
      where_ = ++number;
      if (line.starts_with("Switch") || line.starts_with("Rt"))
        device(line, true);
      else if (line.starts_with("Ca"))
        device(line, false);
      else if (line.starts_with("["))
        port(line);
    }
    if (fabric_.devices.empty()) {
      fail(taccInvalidArgument, "{}: no line begins with Switch or Ca, so it is not what ibnetdiscover writes", origin);
    }
    checkWhole();
  }

  Fabric take() { return std::move(fabric_); }

 private:
  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(taccInvalidArgument, "{}:{}: {}", origin_, where_, fmt::format(format, std::forward<Args>(args)...));
  }

  /// By its id, "S-..." for a switch, "H-..." for a card, "R-..." for a router.
  std::uint32_t deviceOf(std::string_view id, bool isSwitch, std::string_view description) {
    if (id.empty() || id.size() > 64) reject("\"{}\" is no id of a device", shownText(id));
    const auto [known, isNew] = byId_.try_emplace(std::string(id), static_cast<std::uint32_t>(fabric_.devices.size()));
    if (isNew) {
      if (fabric_.devices.size() >= 2 * mostHosts) reject("there are too many devices");
      fabric_.devices.push_back({std::string(id), "", isSwitch});
    }
    Fabric::Device& device = fabric_.devices[known->second];
    if (device.isSwitch != isSwitch) reject("the device {} is a switch and a card", shownText(id));
    if (device.name.empty()) {
      device.name = isSwitch ? switchInDescription(description) : hostInDescription(description);
      if (device.name.empty() && !isSwitch) device.name = hostInDescription(id);
    }
    return known->second;
  }

  void device(std::string_view line, bool isSwitch) {
    const std::optional<std::string_view> id = takeQuoted(line);
    if (!id) reject("\"{}\" has no id in quotation marks", shownText(line));
    current_ = deviceOf(*id, isSwitch, takeQuoted(line).value_or(""));
    hasCurrent_ = true;
  }

  /// [1](100005)  "S-0000000000200001"[2]  # lid 0 lmc 0 "leaf1" lid 0 4xSDR
  void port(std::string_view line) {
    if (!hasCurrent_) reject("a port comes before any device");
    const std::optional<std::int64_t> here = takePort(line);
    const std::optional<std::string_view> id = takeQuoted(line);
    if (!here || !id) reject("a port is written [1] \"S-0002c90000000001\"[7]");
    const std::optional<std::int64_t> there = takePort(line);
    if (!there) reject("the other end has no port number");
    const std::size_t comment = line.find('#');
    line = comment == std::string_view::npos ? std::string_view() : line.substr(comment);
    const std::string_view description = takeQuoted(line).value_or("");
    const std::uint32_t other = deviceOf(*id, !id->starts_with("H-"), description);
    double bandwidth = 0;
    for (const std::string_view word : wordsOf(line)) bandwidth = std::max(bandwidth, infinibandBandwidth(word));
    const End a{current_, *here}, b{other, *there};
    const auto [cable, isNew] = known_.try_emplace(std::minmax(a, b), where_);
    if (!isNew) {
      cable->second = listedAtBoth;
      return;
    }
    if (a == b) cable->second = listedAtBoth;  // a port that is plugged into itself
    if (fabric_.cables.size() >= mostCables) reject("there are too many cables");
    fabric_.cables.push_back({current_, other, bandwidth});
  }

  /// A part of a network would pass for a smaller one.
  void checkWhole() {
    for (const auto& [ends, line] : known_) {
      if (line == listedAtBoth) continue;
      where_ = line;
      const auto& [a, b] = ends;
      reject(
          "the cable from {}[{}] to {}[{}] is listed at one end only, so the file is not all that ibnetdiscover wrote",
          shownText(fabric_.devices[a.first].id), a.second, shownText(fabric_.devices[b.first].id), b.second);
    }
  }

  using End = std::pair<std::uint32_t, std::int64_t>;
  static constexpr std::size_t listedAtBoth = 0;
  const std::string& origin_;
  std::size_t where_ = 0;
  Fabric fabric_;
  std::unordered_map<std::string, std::uint32_t> byId_;
  std::map<std::pair<End, End>, std::size_t> known_;  // cables: the line that lists the first end, or listedAtBoth
  std::uint32_t current_ = 0;
  bool hasCurrent_ = false;
};

}  // namespace

double infinibandBandwidth(std::string_view text) {
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) return 0;
  const auto lanes = parseInteger(text.substr(0, times), 1, 12);
  const auto speed =
      std::find_if(speeds.begin(), speeds.end(), [&](const Speed& one) { return one.name == text.substr(times + 1); });
  return !lanes || speed == speeds.end() ? 0 : static_cast<double>(*lanes) * speed->lane;
}

std::string hostInDescription(std::string_view description) {
  const std::vector<std::string_view> words = wordsOf(description);
  std::string name(words.empty() ? std::string_view() : words.front().substr(0, longestHostName));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c < '!' || c > '~' || c == ',' || c == '[' || c == ']' || c == '"'; }, '_');
  return name;
}

std::string switchInDescription(std::string_view description) {
  if (const std::size_t semicolon = description.find(';'); semicolon != std::string_view::npos) {
    description.remove_prefix(semicolon + 1);
    description = description.substr(0, description.find(':'));
  }
  std::string name(description.substr(0, longestHostName));
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c < ' ' || c > '~' || c == ',' || c == '[' || c == ']' || c == '"'; }, '_');
  return name;
}

Fabric fabricFromIbnetdiscover(std::string_view text, const std::string& origin) { return Reader(text, origin).take(); }

}  // namespace tacc
