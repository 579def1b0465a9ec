#include "selection/network_selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "core/default_arithmetic.hpp"
#include "core/error.hpp"
#include "selection/cost/cost_model.hpp"
#include "selection/message_size.hpp"
#include "selection/selection.hpp"

namespace tacc {
namespace {

/// Of a processor, for a byte that is combined or copied.
constexpr double byteSeconds = 1e-10;
constexpr std::optional<std::uint32_t> nowhere;
/// Messages that share a link with others' may take this factor longer than those that have a port for themselves.
constexpr double sharedSeconds = 3;

// Of messages inside a host, where the topology does not say. A short one between ranks on cores of their own takes 0.3
// to 1 us, and its sender and receiver a fraction of that; long ones are copied.
constexpr double localSeconds = 1e-6, localOverhead = 3e-7, localBytesPerSecond = 4e9;

/// Messages are halved where the call takes so much less of its time: twice as many are twice the work.
constexpr double worthHalving = 0.98;
/// But no message takes less than that of its share of the links. On links of 1 Gbit/s three hosts that share 250
/// Mbit/s reduce 1 MiB in 48 ms with messages of 16 KiB (1.4 ms) and in 51 with 32; four with 8 KiB (0.96 ms) in 37 to
/// 39, with 16 in 35.
constexpr double leastSeconds = 1.25e-3;
/// A call with this number of messages of each rank, one after the other, hardly notices its first and last ones.
constexpr std::size_t longInMessages = 64;

/// Prices for fewer ranks are found as fast as the word of another rank comes.
constexpr int leastShared = 32;

/// A port with less than this of the usual one is narrow. A ring passes it twice; at the end of a chain it is passed
/// once each way, and the chain passes the others twice.
constexpr double narrowPort = 0.7;

/// Of more ranks the roots in one group are alike.
constexpr int mostRootsPriced = 64;

/// The size at which calls of `bytes` are priced. Powers of two for themselves, as most sizes are, and a byte more may
/// be cut into twice as many chunks; in between the middle of the quarter in which they lie.
std::size_t sizeOfClass(std::size_t bytes) {
  const std::size_t power = std::bit_floor(std::max<std::size_t>(bytes, 1));
  if (bytes <= power || power < 8) return power;
  const std::size_t quarter = (bytes - power) * 4 / power;
  return power + power / 8 * (2 * quarter + 1);
}

/// What joins the members of a level's groups, as level `at` of the topology has it. `members`: a host of each.
void join(CostLevel& to, const Topology& topology, int at, const std::vector<std::uint32_t>& members) {
  const Level& from = topology.level(at);
  if (from.wiring == Wiring::tree) return;
  to.linkBytesPerSecond = from.linkBandwidth.value_or(0) * from.links;
  if (from.wiring == Wiring::allToAll) return;
  to.dimensions = from.dimensions;
  for (const std::uint32_t host : members) {
    const std::uint32_t first = topology.groupOf(at - 1, topology.hostsOf(at, topology.groupOf(at, host)).first);
    to.places.push_back(topology.groupOf(at - 1, host) - first);
  }
}

/// "25 MB/s", or "12.5 to 25 MB/s".
std::string describeCapacities(const Capacities& capacities) {
  const double least = capacities.least() * 1e-6, most = capacities.most() * 1e-6;
  if (most == 0) return fmt::format("{:.4g} MB/s and more", least);
  return least == most ? fmt::format("{:.4g} MB/s", least) : fmt::format("{:.4g} to {:.4g} MB/s", least, most);
}

/// What each host's own link carries: as the topology says, else as much as one stream between hosts that are near each
/// other, alone; where nobody knows that either, as the ring of all hosts.
std::vector<double> hostLinks(const Topology& topology, const std::vector<std::optional<std::uint32_t>>& places,
                              const NetworkSpeed& speed) {
  double stream = 0;
  for (int l = 1; l < topology.levels(); ++l) stream = std::max(stream, topology.level(l).bandwidth.value_or(0));
  if (stream == 0) stream = speed.bytesPerSecond;
  std::vector<double> links;
  for (const auto& place : places) links.push_back(place ? topology.uplink(0, *place).value_or(stream) : stream);
  return links;
}

/// The whole is the first level at which all hosts meet: what is further out costs them nothing.
int outermostOf(const Topology& topology, const std::vector<std::optional<std::uint32_t>>& places) {
  int outermost = 1;
  for (const auto& place : places) outermost = std::max(outermost, topology.meet(*places.front(), *place));
  return outermost;
}

/// A host that is alone in a group, of these hosts, has its uplink for itself, as a part of its own link.
void narrowByOwnUplinks(std::vector<double>& links, const Topology& topology,
                        const std::vector<std::optional<std::uint32_t>>& places, int outermost) {
  for (int l = 1; l < outermost; ++l) {
    std::map<std::uint32_t, int> members;
    for (const auto& place : places) ++members[topology.groupOf(l, *place)];
    for (std::size_t n = 0; n < places.size(); ++n) {
      const std::uint32_t group = topology.groupOf(l, *places[n]);
      if (const auto uplink = topology.uplink(l, group); uplink && members[group] == 1)
        links[n] = std::min(links[n], *uplink);
    }
  }
}

}  // namespace

CostMachine costMachineOf(const Topology& topology, const std::vector<std::string>& hosts,
                          const std::vector<int>& ranksOf, const NetworkSpeed& speed) {
  std::vector<std::optional<std::uint32_t>> places;
  for (const std::string& host : hosts) {
    places.push_back(topology.findHost(host));
  }
  const bool isKnown = std::ranges::all_of(places, [](const auto& place) { return place.has_value(); });
  CostMachine machine;
  machine.ranks = 0;
  const int outermost = isKnown ? outermostOf(topology, places) : topology.root();
  std::vector<double> links = hostLinks(topology, isKnown ? places : std::vector(hosts.size(), nowhere), speed);
  if (isKnown) narrowByOwnUplinks(links, topology, places, outermost);
  std::vector<int> firstRank;
  std::vector<double> ports;
  for (std::size_t n = 0; n < hosts.size(); ++n) {
    firstRank.push_back(machine.ranks);
    machine.ranks += ranksOf[n];
    ports.insert(ports.end(), static_cast<std::size_t>(ranksOf[n]), links[n]);
  }
  const double stream = std::ranges::max(links);  // where nobody knows what one stream carries, only links limit it
  machine.ports = ports;
  machine.gamma = byteSeconds;
  machine.overhead = speed.overhead;
  /// `at`: the level of the topology; 0: of the hosts' inside.
  const auto level = [&](std::vector<int> begins, int at, Capacities uplinks) {
    const Level& from = topology.level(at);
    CostLevel to{std::move(begins), from.alpha.value_or(speed.latency), 1 / from.bandwidth.value_or(stream),
                 std::move(uplinks)};
    if (isKnown && at > 0) {
      std::vector<std::uint32_t> members;  // the first host of each
      for (std::size_t n = 0; n < hosts.size(); ++n)
        if (machine.levels.empty() || std::ranges::binary_search(machine.levels.back().begins, firstRank[n]))
          members.push_back(*places[n]);
      join(to, topology, at, members);
    }
    machine.levels.push_back(std::move(to));
  };
  if (machine.ranks > static_cast<int>(hosts.size())) {
    level(firstRank, 0, links);
    machine.levels.back().alpha = speed.latency;
    machine.levels.back().beta = 1 / stream;
  }
  for (int l = 1; isKnown && l < outermost; ++l) {
    std::vector<int> begins;
    std::vector<double> uplinks;
    for (std::size_t n = 0; n < hosts.size(); ++n) {
      const std::uint32_t group = topology.groupOf(l, *places[n]);
      if (n > 0 && group == topology.groupOf(l, *places[n - 1])) continue;
      begins.push_back(firstRank[n]);
      uplinks.push_back(topology.uplink(l, group).value_or(0));
    }
    if (begins.size() == hosts.size()) continue;
    level(std::move(begins), l, std::move(uplinks));
  }
  level({0}, outermost, 0);
  return machine;
}

void joinInMemory(CostMachine& machine, const Level& inside) {
  machine.ports = 0;
  CostLevel& level = machine.levels.front();
  level.alpha = inside.alpha.value_or(localSeconds);
  level.beta = 1 / inside.bandwidth.value_or(localBytesPerSecond);
  level.overhead = localOverhead;
}

std::string describeMachine(const CostMachine& machine) {
  std::string text;
  if (machine.ports.limit()) text += fmt::format("{} a rank's port\n", describeCapacities(machine.ports));
  for (std::size_t l = 0; l < machine.levels.size(); ++l) {
    const CostLevel& level = machine.levels[l];
    text += fmt::format("level {}: {} group{} of ranks, {:.1f} us, {:.4g} MB/s a stream", l, level.begins.size(),
                        level.begins.size() == 1 ? "" : "s", level.alpha * 1e6, 1e-6 / level.beta);
    if (level.uplinks.limit()) text += fmt::format(", {} a group to the outside", describeCapacities(level.uplinks));
    for (const std::uint32_t& side : level.dimensions)
      text += fmt::format("{}{}", &side == level.dimensions.data() ? ", a torus of " : " x ", side);
    if (level.linkBytesPerSecond > 0) text += fmt::format(", {:.4g} MB/s a link", level.linkBytesPerSecond * 1e-6);
    text += '\n';
  }
  return text;
}

std::vector<std::vector<int>> groupsOf(const CostMachine& machine) {
  std::vector<std::vector<int>> groups;
  for (const CostLevel& level : machine.levels) {
    if (level.begins.size() <= 1) continue;
    std::vector<int>& sizes = groups.emplace_back();
    for (std::size_t g = 0; g < level.begins.size(); ++g)
      sizes.push_back((g + 1 < level.begins.size() ? level.begins[g + 1] : machine.ranks) - level.begins[g]);
  }
  return groups;
}

std::vector<int> dimensionsOf(const CostMachine& machine) {
  const std::size_t outermost = machine.levels.size() - 1;
  const CostLevel& level = machine.levels[outermost];
  const std::vector<std::uint32_t>& torus = level.dimensions;
  if (torus.empty()) return {};
  std::vector<int> sides;
  for (const std::uint32_t side : boxOf(torus, level.places))
    if (side > 1) sides.push_back(static_cast<int>(side));
  const int atOne = machine.ranks / static_cast<int>(level.places.size());
  if (sides.empty() || atOne * static_cast<int>(level.places.size()) != machine.ranks) return {};
  if (outermost > 0) {
    const std::vector<int>& begins = machine.levels[outermost - 1].begins;
    for (std::size_t g = 0; g < begins.size(); ++g)
      if (begins[g] != static_cast<int>(g) * atOne) return {};
  }
  if (atOne > 1) sides.push_back(atOne);
  return sides;
}

std::vector<int> narrowOf(const CostMachine& machine) {
  if (!machine.ports.limit()) return {};
  std::vector<double> ports;
  for (int rank = 0; rank < machine.ranks; ++rank) ports.push_back(machine.ports.of(rank));
  const auto middle = ports.begin() + machine.ranks / 2;
  std::ranges::nth_element(ports, middle);
  std::vector<int> narrow;
  for (int rank = 0; rank < machine.ranks; ++rank)
    if (const double port = machine.ports.of(rank); port > 0 && port < narrowPort * *middle) narrow.push_back(rank);
  return narrow;
}

NetworkSelector::NetworkSelector(CostMachine machine, PriceBoard board)
    : map_(std::move(machine)),
      rate_(std::min(map_.port(), sharedSeconds * map_.leastShare())),
      groups_(groupsOf(map_.machine())),
      dimensions_(dimensionsOf(map_.machine())),
      narrow_(narrowOf(map_.machine())),
      board_(std::move(board)) {}

std::size_t NetworkSelector::messageBytes(Collective collective, std::size_t bytes) const {
  const DefaultArithmetic arithmetic;
  const std::size_t all = bytesOfAll({collective, map_.ranks(), 0}, bytes);
  const std::size_t most = tacc::messageBytes(rate_, all);
  const bool isLong = all / most >= longInMessages * static_cast<std::size_t>(map_.ranks());
  if (map_.ranks() > mostRanksPlayed || all <= leastMessage || isLong) return most;
  return std::max(leastMessage, most >> halvingsOf(collective, sizeOfClass(bytes), most));
}

int NetworkSelector::halvingsOf(Collective collective, std::size_t priced, std::size_t most) const {
  const std::tuple key{collective, priced, most};
  if (const auto known = halvings_.find(key); known != halvings_.end()) return known->second;
  NetworkQuestion question;
  question.request = request(collective, 0);
  question.bytes = static_cast<double>(priced);
  question.messageBytes = static_cast<double>(most);
  const NetworkCandidate best = priceNetworkAlgorithms(question, map_).front();
  int halvings = 0;
  const double least = std::max(static_cast<double>(leastMessage), leastSeconds * map_.leastShare());
  for (double before = best.seconds; static_cast<double>(most >> (halvings + 1)) >= least; ++halvings) {
    question.messageBytes /= 2;
    const double seconds = quickPrice(*best.algorithm, question, map_);
    if (seconds > worthHalving * before) break;
    before = seconds;
  }
  return halvings_.emplace(key, halvings).first->second;
}

int NetworkSelector::pricedRoot(Collective collective, int root) const {
  if (!isRooted(collective)) return 0;
  if (map_.ranks() <= mostRootsPriced) return root;
  int l = 0;
  while (map_.groups(l) > mostRootsPriced) ++l;
  return map_.beginOf(map_.groupOf(root, l), l);
}

const std::vector<NetworkCandidate>& NetworkSelector::explain(Collective collective, int root, std::size_t bytes) {
  const std::size_t priced = sizeOfClass(bytes);
  root = pricedRoot(collective, root);
  std::vector<NetworkCandidate>& candidates = candidates_[{collective, root, priced}];
  if (!candidates.empty()) return candidates;
  const DefaultArithmetic arithmetic;
  const auto own = [&] { return find(collective, root, priced); };
  candidates = ranks() < leastShared ? own() : board_.candidates({collective, root, priced}, own);
  if (candidates.front().reason.empty()) giveReasons(candidates, request(collective, root));
  return candidates;
}

std::vector<NetworkCandidate> NetworkSelector::find(Collective collective, int root, std::size_t priced) const {
  NetworkQuestion question;
  question.request = request(collective, root);
  question.bytes = static_cast<double>(priced);
  question.messageBytes = static_cast<double>(messageBytes(collective, priced));
  question.isPlayed = true;
  return priceNetworkAlgorithms(question, map_);
}

std::optional<PartPrices> NetworkSelector::explainParts(const Algorithm& algorithm, std::size_t sumBytes,
                                                        std::size_t resultBytes) const {
  const DefaultArithmetic arithmetic;
  const auto message = static_cast<double>(messageBytes(Collective::allReduce, sumBytes));
  return priceParts(algorithm, request(Collective::allReduce, 0), map_, static_cast<double>(sumBytes),
                    static_cast<double>(resultBytes), message);
}

bool NetworkSelector::meetsDemands(const Algorithm& algorithm, Collective collective, int root,
                                   const PlanDemands& demands) {
  if (demands == PlanDemands{}) return true;
  const auto [known, isNew] = met_.try_emplace({&algorithm, collective, root, demands}, false);
  if (isNew) known->second = meets(algorithm, request(collective, root), demands);
  return known->second;
}

const Algorithm& NetworkSelector::choose(Collective collective, int root, std::size_t bytes, std::string_view forced,
                                         const PlanDemands& demands) {
  if (!forced.empty()) {
    const Algorithm& algorithm = selectAlgorithm({request(collective, root), bytes, false, forced}, {});
    if (!meetsDemands(algorithm, collective, root, demands))
      failOnDemands(algorithm, request(collective, root), demands);
    return algorithm;
  }
  for (const NetworkCandidate& candidate : explain(collective, root, bytes))
    if (candidate.isPossible && meetsDemands(*candidate.algorithm, collective, root, demands))
      return *candidate.algorithm;
  fail(taccInternalError, "no plan for {} of {} ranks, root {}, is as the call asks", nameOf(collective), ranks(),
       root);
}

}  // namespace tacc
