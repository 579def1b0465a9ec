#include "topology/sources/cray_links.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"

namespace tacc {
namespace {

/// A tile has three lanes each way.
constexpr double lanes(double gbits) { return 3 * gbits * 1e9 / 8; }
constexpr std::uint32_t greatestCoordinate = 1023;
constexpr std::uint32_t nodesOfGemini = 2;

struct Tile {
  CrayRouter router;
  bool isGemini = false;
  std::array<std::uint32_t, 3> place = {};
};

bool takeNumber(std::string_view& text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > greatestCoordinate) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool takeLetter(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return false;
  text.remove_prefix(1);
  return true;
}

/// c0-0c0s0g0l00[(0,0,0)] or c0-0c0s0a0l00(0:0:0).
std::optional<Tile> parseTile(std::string_view text) {
  Tile tile;
  Cname& blade = tile.router.blade;
  if (!takeLetter(text, 'c') || !takeNumber(text, blade.cabinet) || !takeLetter(text, '-') ||
      !takeNumber(text, blade.row) || !takeLetter(text, 'c') || !takeNumber(text, blade.chassis) ||
      !takeLetter(text, 's') || !takeNumber(text, blade.slot))
    return std::nullopt;
  tile.isGemini = text.starts_with('g');
  if (!tile.isGemini && !text.starts_with('a')) return std::nullopt;
  text.remove_prefix(1);
  std::uint32_t number = 0;
  if (!takeNumber(text, tile.router.number) || !takeLetter(text, 'l') || !takeNumber(text, number)) return std::nullopt;
  const bool isBracketed = takeLetter(text, '[');
  if (!takeLetter(text, '(')) return std::nullopt;
  for (std::size_t d = 0; d < 3; ++d) {
    if (d > 0 && !takeLetter(text, ',') && !takeLetter(text, ':')) return std::nullopt;
    if (!takeNumber(text, tile.place[d])) return std::nullopt;
  }
  if (!takeLetter(text, ')') || (isBracketed && !takeLetter(text, ']')) || !text.empty()) return std::nullopt;
  return tile;
}

double bandwidthOfGemini(std::string_view type) {
  if (type == "mezzanine") return lanes(6.25);
  if (type == "backplane") return lanes(5);
  if (type.starts_with("cable")) return lanes(3.125);
  fail(taccInvalidArgument, "\"{}\" is no kind of link; right is mezzanine, backplane or cable", shownText(type));
}

double bandwidthOfAries(std::string_view color) {
  if (color == "green" || color == "black") return lanes(14);
  if (color == "blue") return lanes(12.5);
  fail(taccInvalidArgument, "\"{}\" is no color of links; right is green, black or blue", shownText(color));
}

bool isDirection(std::string_view text) {
  return text.size() == 2 && text[0] >= 'X' && text[0] <= 'Z' && (text[1] == '+' || text[1] == '-');
}

/// The router that a node is plugged into.
CrayRouter routerOf(const HostClues& host, bool isGemini) {
  const std::optional<Cname> name = parseCname(host.cname);
  if (!name) fail(taccInvalidArgument, "the host {} has no cname, which the list of links needs", shownText(host.host));
  return {{name->cabinet, name->row, name->chassis, name->slot, 0}, isGemini ? name->node / nodesOfGemini : 0};
}

std::string nameOfRouter(const CrayRouter& router) {
  const Cname& blade = router.blade;
  return fmt::format("c{}-{}c{}s{}g{}", blade.cabinet, blade.row, blade.chassis, blade.slot, router.number);
}

}  // namespace

void CrayLinks::add(std::span<const std::string_view> words) {
  const std::optional<Tile> from = parseTile(words[0]);
  if (!from || words.size() < 4)
    fail(taccInvalidArgument,
         "\"{}\" is no line of rtr --interconnect; right is c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] "
         "LinkType: backplane, or c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)",
         shownText(words[0]));
  if (!places_.empty() && from->isGemini != isGemini_)
    fail(taccInvalidArgument, "\"{}\" is of another kind of router than the lines before", shownText(words[0]));
  isGemini_ = from->isGemini;
  const auto isElsewhere = [this](const Tile& tile) {
    return places_.try_emplace(tile.router, tile.place).first->second != tile.place;
  };
  if (isElsewhere(*from)) fail(taccInvalidArgument, "\"{}\" was at another place before", shownText(words[0]));
  if (words[3] == "processor" || words[3] == "unused") return;
  const std::optional<Tile> to = parseTile(words[3]);
  if (!to || to->isGemini != isGemini_)
    fail(taccInvalidArgument, "\"{}\" is no tile of such a router; right is c0-0c0s1g0l32[(0,0,1)], or unused",
         shownText(words[3]));
  if (isElsewhere(*to)) fail(taccInvalidArgument, "\"{}\" was at another place before", shownText(words[3]));
  if (isGemini_ && (words.size() < 6 || words[4] != "LinkType:" || !isDirection(words[1])))
    fail(taccInvalidArgument, "the link of \"{}\" has no direction or no kind; right is X+ -> ... LinkType: cable",
         shownText(words[0]));
  links_.push_back({from->router, to->router, std::string(words[1]),
                    isGemini_ ? bandwidthOfGemini(words[5]) : bandwidthOfAries(words[1])});
}

Topology CrayLinks::topologyOf(std::span<const HostClues> hosts) const {
  return isGemini_ ? torusOf(hosts) : dragonflyOf(hosts);
}

Topology CrayLinks::torusOf(std::span<const HostClues> hosts) const {
  Coordinates sides = {};
  for (const auto& [router, place] : places_)
    for (std::size_t d = 0; d < 3; ++d) sides[d] = std::max(sides[d], place[d] + 1);

  /// A host: the place of its router, the router, its name.
  using Stand = std::tuple<Coordinates, CrayRouter, std::string>;
  std::vector<Stand> stands;
  for (const HostClues& host : hosts) {
    const CrayRouter router = routerOf(host, true);
    const auto place = places_.find(router);
    if (place == places_.end())
      fail(taccInvalidArgument, "the host {} is at the router {}, of which no link is listed", shownText(host.host),
           nameOfRouter(router));
    stands.emplace_back(place->second, router, host.host);
  }
  std::ranges::sort(stands);

  TopologyDraft draft;
  LevelDraft& routers = draft.levels.emplace_back();
  routers.level.name = "router";
  for (const auto& [place, router, host] : stands) {
    draft.hosts.push_back(host);
    routers.groupOf.push_back(nameOfRouter(router));
  }
  // The model has one figure for all links: that of the slowest, all tiles of a direction together.
  std::map<std::pair<CrayRouter, std::string>, double> sums;
  for (const Link& link : links_) sums[{link.from, link.kind}] += link.bandwidth;
  draft.root.name = "torus";
  draft.root.wiring = Wiring::torus;
  draft.root.links = 1;
  draft.root.dimensions.assign(sides.begin(), sides.end());
  draft.root.linkBandwidth = std::ranges::min_element(sums, {}, [](const auto& sum) { return sum.second; })->second;
  return build(std::move(draft));
}

Topology CrayLinks::dragonflyOf(std::span<const HostClues> hosts) const {
  for (const HostClues& host : hosts) (void)routerOf(host, false);
  TopologyDraft draft = draftOf(topologyFromCrayNames(hosts));
  std::set<std::string> known;
  for (std::size_t l = 0; l < draft.levels.size(); ++l) {
    std::map<std::string, double>& uplinks = draft.levels[l].uplinks;
    known.clear();
    known.insert(draft.levels[l].groupOf.begin(), draft.levels[l].groupOf.end());
    for (const Link& link : links_) {
      const std::string group = groupsOfCname(link.from.blade)[l];
      if (group != groupsOfCname(link.to.blade)[l] && known.contains(group)) uplinks[group] += link.bandwidth;
    }
    if (uplinks.size() < known.size()) continue;
    const double usual = uplinks.begin()->second;
    draft.levels[l].level.uplink = usual;
    std::erase_if(uplinks, [usual](const auto& uplink) { return uplink.second == usual; });
  }
  // Between two groups there are as many links as between any other two, or the model's one figure is the least of
  // them.
  std::map<std::pair<std::string, std::string>, std::uint32_t> between;
  for (const Link& link : links_)
    if (link.kind == "blue") ++between[{groupsOfCname(link.from.blade)[2], groupsOfCname(link.to.blade)[2]}];
  if (!between.empty()) {
    draft.root.links = std::ranges::min_element(between, {}, [](const auto& pair) { return pair.second; })->second;
    draft.root.linkBandwidth = bandwidthOfAries("blue");
  }
  return build(std::move(draft));
}

}  // namespace tacc
