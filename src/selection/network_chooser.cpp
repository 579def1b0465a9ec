#include "selection/network_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "selection/network_selection.hpp"

namespace tacc {
namespace {

/// The model has to promise so much more than the simple rule's algorithm: it is a model, right within 15 %. It is
/// wrong by more where all send to all at once and the topology is not known, or was measured in bad hours.
constexpr double clearly = 1.1, clearlyAllAtOnce = 1.5;
/// Messages of a few hundred bytes and less cost the same.
constexpr std::size_t leastBytes = 64;
/// Of a processor, for a byte that is combined or copied.
constexpr double byteSeconds = 1e-10;

bool sendsAllAtOnce(const Algorithm& algorithm) { return algorithm.name == "oneshot" || algorithm.name == "twoshot"; }

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
  const auto level = [&](std::vector<int> begins, std::optional<double> alpha, std::optional<double> bandwidth,
                         double uplink) {
    machine.levels.push_back(
        {std::move(begins), alpha.value_or(speed.latency), 1 / bandwidth.value_or(speed.bytesPerSecond), uplink});
  };
  if (machine.ranks > static_cast<int>(hosts.size()))
    level(firstRank, std::nullopt, std::nullopt, speed.bytesPerSecond);
  for (int l = 1; isKnown && l < topology.root(); ++l) {
    std::vector<int> begins;
    double uplink = 0;
    for (std::size_t n = 0; n < hosts.size(); ++n) {
      const std::uint32_t group = topology.groupOf(l, *places[n]);
      if (n > 0 && group == topology.groupOf(l, *places[n - 1])) continue;
      begins.push_back(firstRank[n]);
      const double own = topology.uplink(l, group).value_or(0);
      if (own > 0) uplink = uplink == 0 ? own : std::min(uplink, own);
    }
    if (begins.size() == 1 || begins.size() == hosts.size()) continue;
    level(std::move(begins), topology.level(l).alpha, topology.level(l).bandwidth, uplink);
  }
  const Level& root = topology.level(topology.root());
  level({0}, root.alpha, root.bandwidth, 0);
  machine.portBytesPerSecond = speed.bytesPerSecond;
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

NetworkChooser::NetworkChooser(CostMachine machine, NetworkSpeed speed)
    : map_(std::move(machine)), speed_(speed), groups_(groupsOf(map_.machine())) {}

const Algorithm& NetworkChooser::preferred(Collective collective, std::size_t bytes) const {
  return selectNetworkAlgorithm({{collective, map_.ranks(), 0, groups_, {}}, bytes, speed_, {}});
}

std::vector<NetworkCandidate> NetworkChooser::priceAll(Collective collective, std::size_t bytes) const {
  NetworkQuestion question;
  question.request = {collective, map_.ranks(), 0, groups_, {}};
  question.bytes = static_cast<double>(bytes);
  question.leastChunk = static_cast<double>(messageBytes(speed_, 1));
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
  if (!forced.empty())
    return selectNetworkAlgorithm({{collective, map_.ranks(), root, groups_, {}}, bytes, speed_, forced});
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
