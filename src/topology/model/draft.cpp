#include "topology/model/draft.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"

namespace tacc {
namespace {

using Indices = std::vector<std::uint32_t>;

void checkFigures(const Level& level) {
  const auto check = [&](const std::optional<double>& figure, std::string_view what) {
    if (figure && !(*figure > 0 && *figure < 1e30)) {
      fail(taccInvalidArgument, "level \"{}\": {} is {}, but must be above 0", level.name, what, *figure);
    }
  };
  check(level.alpha, "the latency");
  check(level.bandwidth, "the bandwidth");
  check(level.uplink, "the uplink");
  check(level.linkBandwidth, "the bandwidth of a link");
  if (level.rails < 1 || level.rails > mostRails)
    fail(taccInvalidArgument, "level \"{}\": it has {} rails, but must have 1 to {}", level.name, level.rails,
         mostRails);
}

/// Names must be text that every file can hold.
void checkText(const std::string& name) {
  if (!isUtf8(name)) fail(taccInvalidArgument, "the name \"{}\" is no text in UTF-8", shownText(name));
}

/// Every host once.
void checkHosts(const std::vector<std::string>& hosts, const Indices& byName) {
  if (hosts.size() > mostHosts)
    fail(taccInvalidArgument, "a topology has at most {} hosts, not {}", mostHosts, hosts.size());
  for (std::size_t i = 0; i < byName.size(); ++i) {
    const std::string& name = hosts[byName[i]];
    if (!isHostName(name)) {
      fail(taccInvalidArgument,
           "\"{}\" is no name of a host: that has 1 to {} printable characters, without blanks, commas and "
           "brackets",
           shownText(name), longestHostName);
    }
    if (i > 0 && name == hosts[byName[i - 1]]) fail(taccInvalidArgument, "the host {} stands twice", shownText(name));
  }
}

/// Groups of a level as numbers, in the order of their first host.
struct Numbered {
  Indices groupOf;  // by host, in the draft's order
  std::vector<std::string> names;
};

Numbered number(const LevelDraft& level, std::size_t hosts) {
  if (level.groupOf.size() != hosts) {
    fail(taccInternalError, "level \"{}\" has groups for {} of {} hosts", level.level.name, level.groupOf.size(),
         hosts);
  }
  Numbered result;
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (const std::string& name : level.groupOf) {
    const auto [entry, isNew] = known.try_emplace(name, static_cast<std::uint32_t>(result.names.size()));
    if (isNew) {
      checkText(name);
      result.names.push_back(name);
    }
    result.groupOf.push_back(entry->second);
  }
  return result;
}

/// Each group below lies in one group above.
void checkNested(const LevelDraft& below, const Numbered& inner, const LevelDraft& above, const Numbered& outer,
                 const std::vector<std::string>& hosts) {
  std::vector<std::optional<std::uint32_t>> first(inner.names.size());  // a host of each inner group
  for (std::uint32_t host = 0; host < hosts.size(); ++host) {
    std::optional<std::uint32_t>& other = first[inner.groupOf[host]];
    if (!other) other = host;
    if (outer.groupOf[host] == outer.groupOf[*other]) continue;
    fail(taccInvalidArgument,
         "{} \"{}\" lies in two of the level \"{}\": its host {} is in \"{}\", its host {} in \"{}\"; every group of a "
         "level must lie in one group of the next",
         below.level.name, shownText(inner.names[inner.groupOf[host]]), above.level.name, hosts[*other],
         shownText(outer.names[outer.groupOf[*other]]), hosts[host], shownText(outer.names[outer.groupOf[host]]));
  }
}

/// Hosts so that all groups are runs, each group placed by the place of its first host in `order`.
Indices walkOrder(const std::vector<Numbered>& levels, Indices order) {
  for (const Numbered& level : levels) {  // from the inside: stable, so the last level decides first
    std::vector<std::uint32_t> place(level.names.size(), 0xffffffff);
    std::uint32_t next = 0;
    for (const std::uint32_t host : order) {
      std::uint32_t& at = place[level.groupOf[host]];
      if (at == 0xffffffff) at = next++;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return place[level.groupOf[a]] < place[level.groupOf[b]];
    });
  }
  return order;
}

void checkWiring(const Level& level, std::uint32_t groupsBelow, std::uint32_t groups) {
  if (level.wiring != Wiring::torus) {
    if (!level.dimensions.empty())
      fail(taccInvalidArgument, "level \"{}\" has dimensions, but is no torus", level.name);
    return;
  }
  if (level.dimensions.empty()) {
    fail(taccInvalidArgument,
         "level \"{}\": a torus needs dimensions, numbers whose product is the number of groups of the level below, {}",
         level.name, groupsBelow / groups);
  }
  std::uint64_t places = 1;
  for (const std::uint32_t extent : level.dimensions) places = std::min<std::uint64_t>(places * extent, mostHosts + 1);
  if (places * groups != groupsBelow) {
    fail(taccInvalidArgument,
         "level \"{}\": the dimensions of the torus have {} places, but {} group{} of the level below must fill {}",
         level.name, places, groupsBelow, groupsBelow == 1 ? "" : "s",
         groups == 1 ? "it" : fmt::format("{} of them", groups));
  }
}

/// Of the groups of a level: checks them; empty where none differs from its level.
void settleUplinks(const std::string& level, std::vector<std::optional<double>>& uplinks) {
  if (std::ranges::none_of(uplinks, [](const auto& one) { return one.has_value(); })) uplinks.clear();
  for (const auto& uplink : uplinks) {
    Level probe;
    probe.name = level;
    probe.uplink = uplink;
    checkFigures(probe);
  }
}

}  // namespace

Topology build(TopologyDraft draft) {
  const auto count = static_cast<std::uint32_t>(draft.hosts.size());
  if (draft.levels.size() > mostLevels) {
    fail(taccInvalidArgument, "a topology has at most {} levels, not {}", mostLevels, draft.levels.size());
  }
  Indices order(count);
  std::iota(order.begin(), order.end(), 0u);
  Indices byName = order;
  std::sort(byName.begin(), byName.end(),
            [&](std::uint32_t a, std::uint32_t b) { return draft.hosts[a] < draft.hosts[b]; });
  checkHosts(draft.hosts, byName);

  const auto isTorus = [](const LevelDraft& level) { return level.level.wiring == Wiring::torus; };
  if (draft.root.wiring != Wiring::torus && std::none_of(draft.levels.begin(), draft.levels.end(), isTorus)) {
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return naturallyLess(draft.hosts[a], draft.hosts[b]); });
  }
  checkText(draft.name);
  checkText(draft.node.name);
  checkText(draft.root.name);
  for (const LevelDraft& level : draft.levels) checkText(level.level.name);
  std::vector<Numbered> numbered;
  for (const LevelDraft& level : draft.levels) numbered.push_back(number(level, count));
  for (std::size_t l = 1; l < numbered.size(); ++l) {
    checkNested(draft.levels[l - 1], numbered[l - 1], draft.levels[l], numbered[l], draft.hosts);
  }
  order = walkOrder(numbered, std::move(order));

  Topology topology(count);
  topology.name_ = std::move(draft.name);
  topology.nesting_ = Nesting(count);
  std::vector<Topology::LevelGroups> levels(1);
  levels[0].level = std::move(draft.node);
  levels[0].level.kind = LevelKind::node;
  if (levels[0].level.name.empty()) levels[0].level.name = nameOf(LevelKind::node);
  for (const std::uint32_t host : order) {
    if (draft.hostUplinks.empty()) break;
    const auto own = draft.hostUplinks.find(draft.hosts[host]);
    const bool differs = own != draft.hostUplinks.end() && own->second != levels[0].level.uplink;
    levels[0].uplinks.push_back(differs ? std::optional(own->second) : std::nullopt);
  }
  settleUplinks(levels[0].level.name, levels[0].uplinks);
  for (std::size_t l = 0; l < draft.levels.size(); ++l) {
    LevelDraft& from = draft.levels[l];
    Topology::LevelGroups& to = levels.emplace_back();
    to.level = std::move(from.level);
    Indices starts;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t group = numbered[l].groupOf[order[i]];
      if (i > 0 && group == numbered[l].groupOf[order[i - 1]]) continue;
      starts.push_back(i);
      const std::string& name = numbered[l].names[group];
      const auto uplink = from.uplinks.find(name);
      if (!from.uplinks.empty()) {
        to.uplinks.push_back(uplink == from.uplinks.end() || uplink->second == to.level.uplink
                                 ? std::nullopt
                                 : std::optional(uplink->second));
      }
      if (from.hasNames) to.names.push_back(name);
    }
    settleUplinks(to.level.name, to.uplinks);
    if (!topology.nesting_.add(std::move(starts)))
      fail(taccInternalError, "the level \"{}\" is not nested", to.level.name);
  }
  levels.emplace_back().level = std::move(draft.root);
  levels.back().level.kind = LevelKind::root;
  levels.back().level.uplink.reset();
  if (levels.back().level.name.empty()) levels.back().level.name = nameOf(LevelKind::root);
  (void)topology.nesting_.add(count == 0 ? Indices() : Indices{0});

  topology.levels_ = std::move(levels);
  for (int l = 0; l < topology.levels(); ++l) {
    checkFigures(topology.level(l));
    checkWiring(topology.level(l), l > 0 ? topology.groups(l - 1) : 0, topology.groups(l));
  }
  topology.hosts_.reserve(count);
  std::vector<std::uint32_t> placeOf(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    topology.hosts_.push_back(std::move(draft.hosts[order[i]]));
    placeOf[order[i]] = i;
  }
  topology.byName_.reserve(count);
  for (const std::uint32_t host : byName) topology.byName_.push_back(placeOf[host]);

  if (!draft.nodeOf.empty()) {  // descriptions in the order in which hosts use them first, each once
    topology.nodeOf_.assign(count, Topology::noNode);
    bool any = false;
    std::vector<std::uint32_t> numberOf(draft.nodes.size(), Topology::noNode);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::optional<std::uint32_t> node = draft.nodeOf[order[i]];
      if (!node) continue;
      any = true;
      std::uint32_t& number = numberOf[*node];
      if (number == Topology::noNode) {
        const auto same = std::find(topology.nodes_.begin(), topology.nodes_.end(), draft.nodes[*node]);
        number = static_cast<std::uint32_t>(same - topology.nodes_.begin());
        if (same == topology.nodes_.end()) topology.nodes_.push_back(draft.nodes[*node]);
      }
      topology.nodeOf_[i] = number;
    }
    if (!any) topology.nodeOf_.clear();
  }
  return topology;
}

TopologyDraft draftOf(const Topology& topology) {
  TopologyDraft draft;
  draft.name = topology.name();
  draft.hosts = topology.hostNames();
  draft.node = topology.level(0);
  draft.root = topology.level(topology.root());
  for (std::uint32_t host = 0; host < topology.hosts(); ++host)
    if (const auto own = topology.uplink(0, host); own && own != draft.node.uplink)
      draft.hostUplinks[topology.host(host)] = *own;
  for (int l = 1; l < topology.root(); ++l) {
    LevelDraft& level = draft.levels.emplace_back();
    level.level = topology.level(l);
    level.hasNames = !topology.groupName(l, 0).empty();
    level.groupOf.reserve(topology.hosts());
    std::string name;
    for (std::uint32_t host = 0, last = 0xffffffff; host < topology.hosts(); ++host) {
      const std::uint32_t group = topology.groupOf(l, host);
      if (group != last) name = level.hasNames ? topology.groupName(l, group) : std::to_string(group);
      last = group;
      level.groupOf.push_back(name);
    }
    for (std::uint32_t g = 0; g < topology.groups(l); ++g) {
      const std::optional<double> uplink = topology.uplink(l, g);
      if (uplink && uplink != level.level.uplink) {
        level.uplinks[level.hasNames ? topology.groupName(l, g) : std::to_string(g)] = *uplink;
      }
    }
  }
  draft.nodes = topology.nodeDescriptions();
  for (std::uint32_t host = 0; host < topology.hosts() && !draft.nodes.empty(); ++host) {
    const NodeDescription* node = topology.node(host);
    draft.nodeOf.push_back(node == nullptr
                               ? std::nullopt
                               : std::optional(static_cast<std::uint32_t>(node - topology.nodeDescriptions().data())));
  }
  return draft;
}

}  // namespace tacc
