#include "topology/sources/slingshot.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/sources/cray.hpp"

namespace tacc {
namespace {

constexpr double gigabit = 1e9 / 8;  // bytes

/// What stands between the bars, without the blanks around it.
std::vector<std::string_view> cellsOf(std::string_view line) {
  std::vector<std::string_view> cells;
  std::size_t begin = std::min(line.find('|'), line.size());
  while (begin < line.size()) {
    const std::size_t end = line.find('|', begin + 1);
    if (end == std::string_view::npos) break;
    std::string_view cell = line.substr(begin + 1, end - begin - 1);
    cell.remove_prefix(std::min(cell.find_first_not_of(" \t"), cell.size()));
    cells.push_back(cell.substr(0, cell.find_last_not_of(" \t") + 1));
    begin = end;
  }
  return cells;
}

/// "x3000c0r41" of its jack "x3000c0r41j13" or port "x3000c0r41j13p1".
std::string_view switchOf(std::string_view jack) { return jack.substr(0, jack.find('j')); }

}  // namespace

std::optional<double> parseSlingshotSpeed(std::string_view text) {
  const auto isLetter = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(text, isLetter) - text.begin());
  if (digits == 0 || digits + 1 >= text.size() || !text.ends_with('G')) return std::nullopt;
  const auto gigabits = parseInteger(text.substr(digits, text.size() - digits - 1), 1, 1'000'000);
  return gigabits ? std::optional(static_cast<double>(*gigabits) * gigabit) : std::nullopt;
}

bool SlingshotLinks::isLine(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with('|') || line.starts_with("+-");
}

void SlingshotLinks::add(std::string_view line) {
  const std::vector<std::string_view> cells = cellsOf(line);
  if (cells.empty()) return;
  if (std::ranges::find(cells, "xname") != cells.end()) {
    columns_.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) columns_.emplace(cells[i], i);
    for (const std::string_view column : {"dst", "status", "mac", "speed"})
      if (!columns_.contains(column))
        fail(taccInvalidArgument, "the table of links has no column \"{}\"; right is what \"show fabric\" prints",
             column);
    return;
  }
  if (columns_.empty())
    fail(taccInvalidArgument,
         "the table of links has no names of columns above its rows; right is what \"show fabric\" prints");
  if (cells.size() != columns_.size())
    fail(taccInvalidArgument, "the row has {} columns, but there are {}", cells.size(), columns_.size());
  const auto cell = [&](std::string_view column) { return cells[columns_.find(column)->second]; };
  if (cell("status") != "True") return;
  const std::optional<SlingshotPlace> place = parseSlingshotMac(cell("mac"));
  if (!place)
    fail(taccInvalidArgument, "\"{}\" is no address of a port; right is one such as 02:00:00:00:08:31",
         shownText(cell("mac")));
  const std::optional<double> bandwidth = parseSlingshotSpeed(cell("speed"));
  if (!bandwidth)
    fail(taccInvalidArgument, "\"{}\" is no speed of a link; right is one such as BS_200G", shownText(cell("speed")));
  ports_.push_back({std::string(switchOf(cell("xname"))), std::string(switchOf(cell("dst"))), *place, *bandwidth});
}

Topology SlingshotLinks::topologyOf(std::span<const HostClues> hosts) const {
  TopologyDraft draft = draftOf(topologyFromSlingshot(hosts));
  if (draft.hosts.empty())
    fail(taccInvalidArgument,
         "the table of links needs the address of a card of every host, which tells where it is plugged in");
  std::map<std::string_view, SlingshotPlace> places;  // of switches
  for (const Port& port : ports_) places[port.node] = port.place;
  for (std::size_t l = 0; l < draft.levels.size(); ++l) {
    LevelDraft& level = draft.levels[l];
    const auto nameOf = [&](const SlingshotPlace& place) { return groupsOfSlingshot(place)[l]; };
    const std::set<std::string> known(level.groupOf.begin(), level.groupOf.end());
    for (const Port& port : ports_) {
      const std::string group = nameOf(port.place);
      const auto to = places.find(port.to);
      if (known.contains(group) && (to == places.end() || nameOf(to->second) != group))
        level.uplinks[group] += port.bandwidth;
    }
    if (level.uplinks.size() < known.size()) {
      level.uplinks.clear();
      continue;
    }
    const double usual = level.uplinks.begin()->second;
    level.level.uplink = usual;
    std::erase_if(level.uplinks, [usual](const auto& uplink) { return uplink.second == usual; });
  }
  // As of Aries: between two groups there are as many links as between any other two, or the figure is the least.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> between;
  std::optional<double> slowest;
  for (const Port& port : ports_) {
    const auto to = places.find(port.to);
    if (to == places.end() || to->second.group == port.place.group) continue;
    ++between[{port.place.group, to->second.group}];
    slowest = std::min(slowest.value_or(port.bandwidth), port.bandwidth);
  }
  if (!between.empty()) {
    draft.root.links = std::ranges::min_element(between, {}, [](const auto& pair) { return pair.second; })->second;
    draft.root.linkBandwidth = slowest;
  }
  return build(std::move(draft));
}

bool CxiStat::isLine(std::span<const std::string_view> words) {
  return words.size() >= 2 && words[0].size() >= 2 && words[0].ends_with(':');
}

void CxiStat::add(std::span<const std::string_view> words) {
  if (words[0] == "Device:")
    fail(taccInvalidArgument,
         "cxi_stat's lines need the name of their host before them, as pdsh writes it: nid000001: {} {}", words[0],
         shownText(words[1]));
  const std::string_view host = words[0].substr(0, words[0].size() - 1);
  auto found = cards_.find(host);
  if (words[1] == "Device:") {
    if (found == cards_.end()) found = cards_.emplace(host, std::vector<Card>()).first;
    found->second.emplace_back();
    return;
  }
  const bool isMac = words[1] == "MAC:", isOfLink = words[1] == "Link" && words.size() >= 4;
  const bool isSpeed = isOfLink && words[2] == "speed:", isState = isOfLink && words[2] == "state:";
  if (!isMac && !isSpeed && !isState) return;
  if (found == cards_.end())
    fail(taccInvalidArgument, "the host {} tells of a card before its \"Device:\"", shownText(host));
  Card& card = found->second.back();
  if (isState) {
    card.isUp = words[3] == "up";
  } else if (isSpeed) {
    card.card.bytesPerSecond = parseSlingshotSpeed(words[3]).value_or(0);
  } else {
    if (words.size() < 3 || !parseSlingshotMac(words[2]))
      fail(taccInvalidArgument, "\"{}\" is no address of a Slingshot card; right is one such as 02:00:00:00:07:ea",
           words.size() < 3 ? std::string() : shownText(words[2]));
    card.card.mac = words[2];
  }
}

void CxiStat::addTo(std::vector<HostClues>& hosts) const {
  for (const auto& [name, cards] : cards_) {
    auto host = std::ranges::find(hosts, name, &HostClues::host);
    if (host == hosts.end()) {
      hosts.emplace_back().host = name;
      host = hosts.end() - 1;
    }
    for (const Card& card : cards)
      if (card.isUp) host->cards.push_back(card.card);
    if (host->cards.empty()) fail(taccInvalidArgument, "the host {} has no card whose link is up", shownText(name));
  }
}

}  // namespace tacc
