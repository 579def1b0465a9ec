#include "topology/sources/cray.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/host_cards.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t greatestPart = 1'000'000;
constexpr unsigned switchBits = 5, portBits = 6, groupBits = 9;

/// Reads `letter` and a number from the front of `text`.
bool take(std::string_view& text, char letter, std::uint32_t& number) {
  if (text.empty() || text.front() != letter) return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc() || number > greatestPart) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// One level: its name, and the group of a host.
template <class Place>
struct Tier {
  std::string_view name;
  std::function<std::string(const Place&)> groupOf;
};

void addSlingshotCards(TopologyDraft& draft, std::span<const HostClues> hosts) {
  std::vector<std::vector<double>> speeds;
  for (const HostClues& host : hosts) {
    std::vector<double>& own = speeds.emplace_back();
    for (const SlingshotCard& card : host.cards) own.push_back(card.bytesPerSecond);
  }
  addCards(draft, speeds);
}

template <class Place>
Topology topologyOf(std::span<const HostClues> hosts, const std::vector<Place>& places,
                    const std::vector<Tier<Place>>& tiers) {
  TopologyDraft draft;
  for (const HostClues& host : hosts) draft.hosts.push_back(host.host);
  for (const Tier<Place>& tier : tiers) {
    LevelDraft level;
    level.level.kind = draft.levels.empty() ? LevelKind::leaf : LevelKind::group;
    level.level.name = tier.name;
    for (const Place& place : places) level.groupOf.push_back(tier.groupOf(place));
    draft.levels.push_back(std::move(level));
  }
  draft.root.name = "dragonfly";
  draft.root.wiring = Wiring::allToAll;
  draft.root.links = 1;
  addSlingshotCards(draft, hosts);
  return build(std::move(draft));
}

template <class Place>
std::vector<Place> placesOf(std::span<const HostClues> hosts, const std::string& (*nameOf)(const HostClues&),
                            std::optional<Place> (*parse)(std::string_view), std::string_view right) {
  std::vector<Place> places;
  for (const HostClues& host : hosts) {
    const std::string& name = nameOf(host);
    if (name.empty()) return {};
    const std::optional<Place> place = parse(name);
    if (!place)
      fail(taccInvalidArgument, "host {}: \"{}\" is no place in a Cray; right is {}", host.host, shownText(name),
           right);
    places.push_back(*place);
  }
  return places;
}

}  // namespace

std::optional<Cname> parseCname(std::string_view text) {
  Cname name;
  if (!take(text, 'c', name.cabinet) || !take(text, '-', name.row) || !take(text, 'c', name.chassis) ||
      !take(text, 's', name.slot) || !take(text, 'n', name.node) || !text.empty()) {
    return std::nullopt;
  }
  return name;
}

std::array<std::string, 3> groupsOfCname(const Cname& name) {
  const std::string chassis = fmt::format("c{}-{}c{}", name.cabinet, name.row, name.chassis);
  return {fmt::format("{}s{}", chassis, name.slot), chassis,
          fmt::format("c{}-{} and c{}-{}", name.cabinet & ~1u, name.row, name.cabinet | 1u, name.row)};
}

std::optional<Xname> parseXname(std::string_view text) {
  Xname name;
  if (!take(text, 'x', name.cabinet) || !take(text, 'c', name.chassis) || !take(text, 's', name.slot) ||
      !take(text, 'b', name.board) || !take(text, 'n', name.node) || !text.empty()) {
    return std::nullopt;
  }
  return name;
}

std::optional<SlingshotPlace> parseSlingshotMac(std::string_view text) {
  std::uint64_t address = 0;
  if (text.size() != 17) return std::nullopt;
  for (std::size_t byte = 0; byte < 6; ++byte) {
    unsigned value = 0;
    const char* const at = text.data() + byte * 3;
    const auto [end, error] = std::from_chars(at, at + 2, value, 16);
    if (error != std::errc() || end != at + 2 || (byte < 5 && at[2] != ':')) return std::nullopt;
    address = address << 8 | value;
  }
  constexpr std::uint64_t prefix = 0x020000;  // locally administered: given by the network, not by the vendor
  if (address >> 24 != prefix || (address & 0xffffff) >> (groupBits + switchBits + portBits) != 0) return std::nullopt;
  const auto place = static_cast<std::uint32_t>(address & 0xfffff);
  return SlingshotPlace{place >> (switchBits + portBits), place >> portBits & ((1u << switchBits) - 1),
                        place & ((1u << portBits) - 1)};
}

std::array<std::string, 2> groupsOfSlingshot(const SlingshotPlace& place) {
  return {fmt::format("group {} switch {}", place.group, place.switchInGroup), fmt::format("group {}", place.group)};
}

Topology topologyFromCrayNames(std::span<const HostClues> hosts) {
  if (hosts.empty()) return {};
  const std::vector<Cname> cnames = placesOf<Cname>(
      hosts, [](const HostClues& host) -> const std::string& { return host.cname; }, parseCname,
      "a cname such as c0-0c0s0n0");
  if (!cnames.empty()) {
    return topologyOf<Cname>(hosts, cnames,
                             {{"blade", [](const Cname& c) { return groupsOfCname(c)[0]; }},
                              {"chassis", [](const Cname& c) { return groupsOfCname(c)[1]; }},
                              {"cabinet pair", [](const Cname& c) { return groupsOfCname(c)[2]; }}});
  }
  const std::vector<Xname> xnames = placesOf<Xname>(
      hosts, [](const HostClues& host) -> const std::string& { return host.xname; }, parseXname,
      "an xname such as x1000c0s0b0n0");
  if (xnames.empty()) return {};
  return topologyOf<Xname>(
      hosts, xnames,
      {{"blade", [](const Xname& x) { return fmt::format("x{}c{}s{}", x.cabinet, x.chassis, x.slot); }},
       {"chassis", [](const Xname& x) { return fmt::format("x{}c{}", x.cabinet, x.chassis); }},
       {"cabinet", [](const Xname& x) { return fmt::format("x{}", x.cabinet); }}});
}

Topology topologyFromSlingshot(std::span<const HostClues> hosts) {
  std::vector<SlingshotPlace> places;
  for (const HostClues& host : hosts) {
    const std::optional<SlingshotPlace> place =
        host.cards.empty() ? std::nullopt : parseSlingshotMac(host.cards.front().mac);
    if (!place) return {};
    places.push_back(*place);
  }
  if (places.empty()) return {};
  return topologyOf<SlingshotPlace>(hosts, places,
                                    {{"switch", [](const SlingshotPlace& p) { return groupsOfSlingshot(p)[0]; }},
                                     {"group", [](const SlingshotPlace& p) { return groupsOfSlingshot(p)[1]; }}});
}

}  // namespace tacc
