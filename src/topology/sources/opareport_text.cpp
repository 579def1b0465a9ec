// Omni-Path networks: the list of links of opareport, as text (-o links) or as XML (-o topology, or -o links -x).
#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/ibnet.hpp"

namespace tacc {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// Bytes/s of "100g" or "12.5g": Gbit/s of data.
std::optional<double> rateOf(std::string_view word) {
  if (!word.ends_with('g')) return std::nullopt;
  word.remove_suffix(1);
  double gigabits = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gigabits);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return gigabits >= 1 && gigabits <= 1e5 ? std::optional(gigabits * 1.25e8) : std::nullopt;
}

/// One end of a link.
struct Port {
  std::string_view device, number, type, description;
};

/// "0x001175010108866d   1 FI   co1195 hfi1_0".
std::optional<Port> portIn(std::string_view text) {
  const std::vector<std::string_view> words = wordsOf(text);
  if (words.size() < 3 || !words[0].starts_with("0x") || (words[2] != "FI" && words[2] != "SW")) return std::nullopt;
  const auto behind = static_cast<std::size_t>(words[2].data() + words[2].size() - text.data());
  return Port{words[0], words[1], words[2], trimmed(text.substr(behind))};
}

class OpaReader {
 public:
  OpaReader(std::string_view text, const std::string& origin) : origin_(origin) {
    std::size_t number = 0;
    for (const std::string_view line : linesOf(text)) {
      where_ = ++number;
      const std::string_view words = trimmed(line);
      if (words.starts_with('<') && !words.starts_with("<->"))
        readXml(words);
      else
        readText(words);
    }
    checkWhole();
  }

  Fabric take() { return std::move(fabric_); }

 private:
  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(taccInvalidArgument, "{}:{}: {}", origin_, where_, fmt::format(format, std::forward<Args>(args)...));
  }

  void readText(std::string_view line) {
    if (const std::size_t mark = line.find(" Links in Fabric"); mark != std::string_view::npos) {
      const auto links = parseInteger(line.substr(0, mark), 0, static_cast<std::int64_t>(mostCables));
      if (!links) reject("this list has a part of the links; opareport -o links has all of them");
      announced_ += static_cast<std::size_t>(*links);
      return;
    }
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view first = line.substr(0, blank);
    const std::optional<double> rate = rateOf(first);
    const std::optional<Port> port = rate || first == "<->" ? portIn(line.substr(blank)) : std::nullopt;
    if (!port) return;  // a heading, a cable's description, or what other programs say
    if (rate) {
      begin(*rate);
    } else if (ends_.size() != 1) {
      reject("the second end of a link comes without the first");
    }
    ends_.push_back(*port);
    if (ends_.size() == 2) finish();
  }

  /// opareport writes an element a line.
  void readXml(std::string_view line) {
    const std::string_view tag = line.substr(1, line.find_first_of(" >", 1) - 1);
    if (tag == "LinkSummary") isInSummary_ = true, hasXml_ = true;
    if (tag == "/LinkSummary") isInSummary_ = false;
    if (!isInSummary_) return;
    const std::size_t open = line.find('>'), close = line.rfind("</");
    const bool hasValue = open != std::string_view::npos && close != std::string_view::npos && close > open;
    const std::string_view value = hasValue ? trimmed(line.substr(open + 1, close - open - 1)) : std::string_view();
    if (tag == "Link") {
      begin(0);
    } else if (tag == "Rate") {
      rate_ = rateOf(value).value_or(0);
    } else if (tag == "Port") {
      ends_.emplace_back();
    } else if (tag == "/Link") {
      ++announced_;
      if (ends_.size() != 2) reject("a link has {} ends, but must have 2", ends_.size());
      finish();
    } else if (!ends_.empty()) {
      Port& port = ends_.back();
      if (tag == "NodeGUID") port.device = value;
      if (tag == "PortNum") port.number = value;
      if (tag == "NodeType") port.type = value;
      if (tag == "NodeDesc") port.description = value;
    }
  }

  void begin(double rate) {
    if (!ends_.empty()) reject("the link before has one end only");
    rate_ = rate;
    ++links_;
  }

  using End = std::pair<std::uint32_t, std::int64_t>;

  void finish() {
    const End a = endOf(ends_[0]), b = endOf(ends_[1]);
    ends_.clear();
    for (const auto& [here, there] : {std::pair(a, b), std::pair(b, a)}) {
      const auto [known, isNew] = cableAt_.try_emplace(here, there);
      if (!isNew && known->second != there)
        reject("port {} of {} has another cable already", here.second, fabric_.devices[here.first].id);
      if (!isNew && here == a) return;  // listed twice
    }
    if (fabric_.cables.size() >= mostCables) reject("there are too many cables");
    fabric_.cables.push_back({a.first, b.first, rate_});
  }

  End endOf(const Port& port) {
    const auto number = parseInteger(port.number, 0, 65535);
    if (!port.device.starts_with("0x") || port.device.size() > 18 || !number)
      reject("a port has the GUID of its node such as 0x001175010108866d and a number, not \"{}\" and \"{}\"",
             shownText(port.device), shownText(port.number));
    if (port.type != "FI" && port.type != "SW")
      reject("a node is FI (a host's card) or SW (a switch), not \"{}\"", shownText(port.type));
    const auto [known, isNew] =
        byId_.try_emplace(std::string(port.device), static_cast<std::uint32_t>(fabric_.devices.size()));
    if (isNew) {
      if (fabric_.devices.size() >= 2 * mostHosts) reject("there are too many devices");
      describeDevice(fabric_.devices.emplace_back(Fabric::Device{std::string(port.device), ""}), port.type == "SW",
                     port.description);
    }
    const bool isSwitch = fabric_.devices[known->second].kind == Fabric::Kind::switching;
    if (isSwitch != (port.type == "SW")) reject("the node {} is FI and SW", shownText(port.device));
    return {known->second, *number};
  }

  /// A part of a network would pass for a smaller one.
  void checkWhole() {
    if (links_ == 0)
      fail(taccInvalidArgument, "{}: there is no link, so it is not what opareport -o links writes", origin_);
    if (!ends_.empty() || (hasXml_ && isInSummary_))
      reject("the list of links ends in the middle, so the file is not all that opareport wrote");
    if (links_ != announced_) {
      fail(taccInvalidArgument,
           "{}: it has {} links of the {} that it speaks of, so it is not all that opareport wrote", origin_, links_,
           announced_);
    }
  }

  const std::string& origin_;
  std::size_t where_ = 0;
  Fabric fabric_;
  std::unordered_map<std::string, std::uint32_t> byId_;
  std::map<End, End> cableAt_;
  std::vector<Port> ends_;  // of the link that is being read
  double rate_ = 0;
  std::size_t links_ = 0, announced_ = 0;
  bool isInSummary_ = false, hasXml_ = false;
};

}  // namespace

bool isOpareport(std::string_view text) {
  if (text.find("<LinkSummary>") != std::string_view::npos) return true;
  for (const std::string_view line : linesOf(text)) {
    const std::string_view words = trimmed(line);
    if (words.starts_with("<->") && portIn(words.substr(3))) return true;
  }
  return false;
}

Fabric fabricFromOpareport(std::string_view text, const std::string& origin) { return OpaReader(text, origin).take(); }

}  // namespace tacc
