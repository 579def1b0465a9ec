#include "selection/network_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "selection/network_selection.hpp"

namespace tacc {
namespace {

/// The model has to promise so much more than the simple rule's algorithm: it is a model. Simulations of machines and
/// sizes put its prices within 5 % five times in six (docs/sim.md). It is wrong by more where all send to all at once
/// and the topology is not known, or was measured in bad hours.
constexpr double clearly = 1.1, clearlyAllAtOnce = 1.5;
/// Messages of a few hundred bytes and less cost the same.
constexpr std::size_t leastBytes = 64;
/// Of a processor, for a byte that is combined or copied.
constexpr double byteSeconds = 1e-10;

bool sendsAllAtOnce(const Algorithm& algorithm) { return algorithm.name == "oneshot" || algorithm.name == "twoshot"; }

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
  std::vector<int> firstRank;
  for (const int ranks : ranksOf) {
    firstRank.push_back(machine.ranks);
    machine.ranks += ranks;
  }
  machine.gamma = byteSeconds;
  machine.overhead = speed.overhead;
  /// `at`: the level of the topology; 0: of the hosts' inside.
  const auto level = [&](std::vector<int> begins, int at, double uplink) {
    const Level& from = topology.level(at);
    CostLevel to{std::move(begins), from.alpha.value_or(speed.latency),
                 1 / from.bandwidth.value_or(speed.bytesPerSecond), uplink};
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
    level(firstRank, 0, speed.bytesPerSecond);
    machine.levels.back().alpha = speed.latency;
    machine.levels.back().beta = 1 / speed.bytesPerSecond;
  }
  // The whole is the first level at which all hosts meet: what is further out costs them nothing.
  int outermost = topology.root();
  if (isKnown) {
    outermost = 1;
    for (const auto& place : places) outermost = std::max(outermost, topology.meet(*places.front(), *place));
  }
  for (int l = 1; isKnown && l < outermost; ++l) {
    std::vector<int> begins;
    double uplink = 0;
    for (std::size_t n = 0; n < hosts.size(); ++n) {
      const std::uint32_t group = topology.groupOf(l, *places[n]);
      if (n > 0 && group == topology.groupOf(l, *places[n - 1])) continue;
      begins.push_back(firstRank[n]);
      const double own = topology.uplink(l, group).value_or(0);
      if (own > 0) uplink = uplink == 0 ? own : std::min(uplink, own);
    }
    if (begins.size() == hosts.size()) continue;
    level(std::move(begins), l, uplink);
  }
  level({0}, outermost, 0);
  machine.portBytesPerSecond = speed.bytesPerSecond;
  // Several streams of a host can carry more than the one that was measured, if its card does.
  if (isKnown && machine.ranks == static_cast<int>(hosts.size()))
    machine.portBytesPerSecond = std::max(speed.bytesPerSecond, topology.uplink(0, *places.front()).value_or(0));
  return machine;
}

std::string describeMachine(const CostMachine& machine) {
  std::string text;
  for (std::size_t l = 0; l < machine.levels.size(); ++l) {
    const CostLevel& level = machine.levels[l];
    text += fmt::format("level {}: {} group{} of ranks, {:.1f} us, {:.4g} MB/s a stream{}\n", l, level.begins.size(),
                        level.begins.size() == 1 ? "" : "s", level.alpha * 1e6, 1e-6 / level.beta,
                        level.uplinkBytesPerSecond > 0
                            ? fmt::format(", {:.4g} MB/s a group to the outside", level.uplinkBytesPerSecond * 1e-6)
                            : std::string());
    text.pop_back();
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

NetworkChooser::NetworkChooser(CostMachine machine, NetworkSpeed speed)
    : map_(std::move(machine)),
      speed_(speed),
      groups_(groupsOf(map_.machine())),
      dimensions_(dimensionsOf(map_.machine())) {}

const Algorithm& NetworkChooser::preferred(Collective collective, std::size_t bytes) const {
  return selectNetworkAlgorithm({request(collective, 0), bytes, speed_, {}});
}

std::vector<NetworkCandidate> NetworkChooser::priceAll(Collective collective, std::size_t bytes) const {
  NetworkQuestion question;
  question.request = request(collective, 0);
  question.bytes = static_cast<double>(bytes);
  question.messageBytes = static_cast<double>(messageBytes(speed_, bytesOfAll(question.request, bytes), 1));
  std::vector<NetworkCandidate> candidates = chooseNetworkAlgorithm(question, map_);
  const auto simple = std::ranges::find(candidates, &preferred(collective, bytes), &NetworkCandidate::algorithm);
  if (simple == candidates.begin() || simple == candidates.end() || !simple->isPossible) return candidates;
  const auto better = std::find_if(candidates.begin(), simple, [&](const NetworkCandidate& candidate) {
    return candidate.seconds * (sendsAllAtOnce(*candidate.algorithm) ? clearlyAllAtOnce : clearly) < simple->seconds;
  });
  if (better == simple) simple->reason += "; kept, as nothing is clearly faster";
  std::rotate(candidates.begin(), better, better + 1);
  return candidates;
}

const Algorithm& NetworkChooser::choose(Collective collective, int root, std::size_t bytes, std::string_view forced) {
  if (!forced.empty()) return selectNetworkAlgorithm({request(collective, root), bytes, speed_, forced});
  const int sizeClass = static_cast<int>(std::bit_width(std::max(bytes, leastBytes)));
  const Algorithm*& chosen = chosen_[{collective, sizeClass}];
  if (chosen == nullptr) chosen = priceAll(collective, std::size_t{1} << (sizeClass - 1)).front().algorithm;
  return *chosen;
}

std::vector<NetworkCandidate> NetworkChooser::explain(Collective collective, std::size_t bytes) {
  const int sizeClass = static_cast<int>(std::bit_width(std::max(bytes, leastBytes)));
  return priceAll(collective, std::size_t{1} << (sizeClass - 1));
}

}  // namespace tacc
