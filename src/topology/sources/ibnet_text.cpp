#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/ibnet.hpp"

namespace tacc {
namespace {

constexpr std::array<std::pair<std::string_view, IbnetRecord>, 4> words = {{{"Switch", IbnetRecord::switching},
                                                                            {"Rt", IbnetRecord::switching},
                                                                            {"Ca", IbnetRecord::card},
                                                                            {"Hca", IbnetRecord::card}}};

void skipBlanks(std::string_view& text) { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

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
  skipBlanks(text);
  if (text.empty() || text.front() != '[') return std::nullopt;
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(1, close - 1);
  text.remove_prefix(close + 1);
  return parseInteger(digits, 0, 65535);
}

/// Port lines begin with a number in brackets, and name something in quotation marks or lack the rest. So do not:
/// "[root@admin ~]# ibnetdiscover", "[1]+  Done".
bool isPortLine(std::string_view line) {
  if (!line.starts_with('[')) return false;
  const std::size_t end = line.find_first_not_of("0123456789", 1);
  if (end == 1) return false;
  return end == std::string_view::npos || line.size() == end + 1 || line.find('"') != std::string_view::npos;
}

class IbnetReader {
 public:
  IbnetReader(std::string_view text, const std::string& origin) : origin_(origin) {
    std::size_t number = 0;
    for (const std::string_view line : linesOf(text)) {
      where_ = ++number;
      if (const std::optional<IbnetRecord> record = ibnetRecordOf(line))
        device(line, *record);
      else if (isPortLine(line))
        port(line);
      else if (line.starts_with("sysimgguid="))
        system_ = line.substr(line.find('=') + 1);
      else if (line.starts_with("include "))
        reject("it includes another file; give one file that has all of the network");
    }
    if (fabric_.devices.empty()) {
      fail(taccInvalidArgument, "{}: no line begins with Switch, Ca or Hca, so it is not what ibnetdiscover writes",
           origin);
    }
    checkWhole();
  }

  Fabric take() { return std::move(fabric_); }

 private:
  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(taccInvalidArgument, "{}:{}: {}", origin_, where_, fmt::format(format, std::forward<Args>(args)...));
  }

  /// By its id: "S-..." for a switch, "H-..." for a card, "R-..." for a router, or what somebody called it.
  std::uint32_t deviceOf(std::string_view id, std::optional<bool> isSwitch) {
    if (id.empty() || id.size() > 64) reject("\"{}\" is no id of a device", shownText(id));
    if (!isSwitch && id.starts_with("H-")) isSwitch = false;
    if (!isSwitch && (id.starts_with("S-") || id.starts_with("R-"))) isSwitch = true;
    const auto [known, isNew] = byId_.try_emplace(std::string(id), static_cast<std::uint32_t>(fabric_.devices.size()));
    if (isNew) {
      if (fabric_.devices.size() >= 2 * mostHosts) reject("there are too many devices");
      fabric_.devices.push_back({std::string(id), ""});
      isSwitch_.emplace_back();
    }
    std::optional<bool>& before = isSwitch_[known->second];
    if (isSwitch && before && *isSwitch != *before) reject("the device {} is a switch and a card", shownText(id));
    if (!before && isSwitch) before = isSwitch;
    return known->second;
  }

  /// Only a device's own record tells what it is called: the cables to it repeat that.
  void device(std::string_view line, IbnetRecord record) {
    const std::optional<std::string_view> id = takeQuoted(line);
    if (!id) reject("\"{}\" has no id in quotation marks", shownText(line));
    const bool isSwitch = record == IbnetRecord::switching;
    current_ = deviceOf(*id, isSwitch);
    hasCurrent_ = true;
    const std::string_view system = std::exchange(system_, {});
    Fabric::Device& device = fabric_.devices[current_];
    const std::string_view comment = line.substr(std::min(line.find('#'), line.size()));
    std::string_view rest = comment;
    describeDevice(device, isSwitch, takeQuoted(rest).value_or(isGuidId(*id) ? "" : *id));
    if (system.size() <= longestHostName && wordsOf(system).size() == 1) device.system = wordsOf(system).front();
  }

  /// "H-0002c9031000000c" says nothing to people; other ids do.
  static bool isGuidId(std::string_view id) {
    return id.size() == 18 && id[1] == '-' &&
           id.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
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
    (void)takeQuoted(line);  // the description, which may hold anything
    const std::uint32_t other = deviceOf(*id, std::nullopt);
    double bandwidth = 0;
    for (const std::string_view word : wordsOf(line)) bandwidth = std::max(bandwidth, infinibandBandwidth(word));
    const End a{current_, *here}, b{other, *there};
    const auto [cable, isNew] = known_.try_emplace(std::minmax(a, b), Listing{where_, a});
    if (!isNew) {
      if (cable->second.by != a) cable->second.line = listedAtBoth;
      return;
    }
    if (a == b) cable->second.line = listedAtBoth;  // a port that is plugged into itself
    if (fabric_.cables.size() >= mostCables) reject("there are too many cables");
    fabric_.cables.push_back({current_, other, bandwidth});
  }

  /// A part of a network would pass for a smaller one.
  void checkWhole() {
    for (const auto& [ends, listing] : known_) {
      if (listing.line == listedAtBoth) continue;
      where_ = listing.line;
      const auto& [a, b] = ends;
      reject(
          "the cable from {}[{}] to {}[{}] is listed at one end only, so the file is not all that ibnetdiscover wrote",
          shownText(fabric_.devices[a.first].id), a.second, shownText(fabric_.devices[b.first].id), b.second);
    }
  }

  using End = std::pair<std::uint32_t, std::int64_t>;
  static constexpr std::size_t listedAtBoth = 0;
  struct Listing {
    std::size_t line;  // that lists the cable at one end, or listedAtBoth
    End by;
  };
  const std::string& origin_;
  std::size_t where_ = 0;
  Fabric fabric_;
  std::unordered_map<std::string, std::uint32_t> byId_;
  std::map<std::pair<End, End>, Listing> known_;  // cables
  std::uint32_t current_ = 0;
  bool hasCurrent_ = false;
  std::vector<std::optional<bool>> isSwitch_;  // by device, where it is known
  std::string_view system_;                    // of the record that comes next
};

}  // namespace

std::optional<IbnetRecord> ibnetRecordOf(std::string_view line) {
  std::string_view rest = line;
  std::optional<IbnetRecord> record;
  for (const auto& [word, kind] : words) {
    if (!line.starts_with(word)) continue;
    rest.remove_prefix(word.size());
    record = kind;
    break;
  }
  const std::size_t blanks = rest.size();
  skipBlanks(rest);
  if (rest.size() == blanks || rest.empty() || rest.front() < '0' || rest.front() > '9') return std::nullopt;
  return rest.find('"') == std::string_view::npos ? std::nullopt : record;
}

Fabric fabricFromIbnetdiscover(std::string_view text, const std::string& origin) {
  return IbnetReader(text, origin).take();
}

}  // namespace tacc
