#include "probe.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "comm/communicator.hpp"
#include "comm/launch/launch_id.hpp"
#include "core/error.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/saved.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

/// To three digits: no measurement is more exact, and people read them. As files write them, since what is read again
/// must be equal.
void round(double& figure, double unit, std::string_view name, std::optional<double> (*parse)(std::string_view)) {
  const double digits = std::stod(fmt::format("{:.2e}", figure / unit));
  figure = parse(fmt::format("{} {}", digits, name)).value_or(figure);
}
void roundBandwidth(double& figure) { round(figure, 1e6, "MB/s", parseBandwidth); }

void round(Level& level) {
  if (level.alpha) round(*level.alpha, 1e-6, "us", parseLatency);
  for (std::optional<double>* figure : {&level.bandwidth, &level.uplink, &level.linkBandwidth})
    if (*figure) roundBandwidth(**figure);
}

Topology rounded(const Topology& topology) {
  TopologyDraft draft = draftOf(topology);
  round(draft.node);
  round(draft.root);
  for (auto& [host, uplink] : draft.hostUplinks) roundBandwidth(uplink);
  for (LevelDraft& level : draft.levels) {
    round(level.level);
    for (auto& [group, uplink] : level.uplinks) roundBandwidth(uplink);
  }
  return build(std::move(draft));
}

std::string remarkOn(const ProbedNetwork& network) {
  return fmt::format("tacc_topo --probe measured this over {}.", network.transport);
}

}  // namespace

ProbedNetwork probeNetwork(const std::function<void()>& prepare) {
  if (!isLaunched()) {
    fail(taccInvalidUsage,
         "--probe measures between hosts, but nothing says that this process is a rank; start one on every host with "
         "mpiexec, srun or torchrun (docs/use/running.md), for instance: srun --ntasks-per-node=1 tacc_topo --probe "
         "--save");
  }
  const LaunchedRank launched = findLaunch();
  if (launched.rank == 0) prepare();
  CommConfig config;
  config.surveysAnew = true;
  const auto communicator = Communicator::join(launched.id, launched.ranks, launched.rank, config);
  launched.number->keep();
  ProbedNetwork network{launched.rank, communicator->topology(), communicator->transportName()};
  if (network.topology == nullptr) {
    fail(taccInvalidUsage, "all {} ranks are on this host, so there is no network to measure; start one on every host",
         launched.ranks);
  }
  network.topology = std::make_shared<const Topology>(rounded(*network.topology));
  return network;
}

std::string keep(const ProbedNetwork& network) {
  std::string path = pathOfSaved(Surroundings::here(), network.transport, network.topology->hostNames());
  saveTopology(path, *network.topology, remarkOn(network));
  return path;
}

void requireKeepable() { requireSavable(pathOfSaved(Surroundings::here(), "tried", {})); }

void writeTo(const std::string& path, const ProbedNetwork& network) {
  saveTopology(path, *network.topology, remarkOn(network));
}

}  // namespace tacc
