#include "topology/sources/cxi_stat.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/sources/cray.hpp"
#include "topology/sources/slingshot_links.hpp"

namespace tacc {
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
