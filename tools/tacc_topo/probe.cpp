#include "probe.hpp"

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/launch_id.hpp"
#include "topology/saved.hpp"

namespace tacc {
namespace {

std::string remarkOn(const ProbedNetwork& network) {
  return fmt::format("tacc_topo --probe measured this over {}.", network.transport);
}

}  // namespace

ProbedNetwork probeNetwork() {
  if (!isLaunched()) {
    fail(
        taccInvalidUsage,
        "--probe measures between hosts, but nothing says that this process is a rank; start one on every host with "
        "mpiexec, srun or torchrun (docs/running.md), for instance: srun --ntasks-per-node=1 tacc_topo --probe --save");
  }
  const LaunchedRank launched = findLaunch();
  CommConfig config;
  config.surveysAnew = true;
  const auto communicator = Communicator::join(launched.id, launched.ranks, launched.rank, config);
  launched.number->keep();
  ProbedNetwork network{launched.rank, communicator->topology(), communicator->transportName()};
  if (network.topology == nullptr) {
    fail(taccInvalidUsage, "all {} ranks are on this host, so there is no network to measure; start one on every host",
         launched.ranks);
  }
  return network;
}

std::string keep(const ProbedNetwork& network) {
  std::string path = pathOfSaved(Surroundings::here(), network.transport, network.topology->hostNames());
  saveTopology(path, *network.topology, remarkOn(network));
  return path;
}

void writeTo(const std::string& path, const ProbedNetwork& network) {
  saveTopology(path, *network.topology, remarkOn(network));
}

}  // namespace tacc
