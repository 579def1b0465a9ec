#include "comm/cluster_machine.hpp"

#include <string>

#include "selection/network_chooser.hpp"

namespace tacc {
namespace {

// Of messages inside a host, where the topology does not say. A short one between ranks on cores of their own takes 0.3
// to 1 us, and its sender and receiver a fraction of that; long ones are copied.
constexpr double localSeconds = 1e-6, localOverhead = 3e-7, localBytesPerSecond = 4e9;

/// Ranks of a host meet in its memory: what they send each other crosses no link, and all share the host's own.
void joinInMemory(CostMachine& machine, const Level& inside) {
  machine.ports = 0;
  CostLevel& level = machine.levels.front();
  level.alpha = inside.alpha.value_or(localSeconds);
  level.beta = 1 / inside.bandwidth.value_or(localBytesPerSecond);
  level.overhead = localOverhead;
}

}  // namespace

CostMachine clusterMachine(const std::vector<RankIdentity>& who, const HostMap& hosts, const Topology& topology,
                           const NetworkSpeed& speed, bool ofAllRanks) {
  std::vector<std::string> names;
  std::vector<int> ranksOf;
  for (int host = 0; host < hosts.hosts(); ++host) {
    names.emplace_back(who[static_cast<std::size_t>(hosts.ranksOf(host).front())].hostName.data());
    ranksOf.push_back(ofAllRanks ? static_cast<int>(hosts.ranksOf(host).size()) : 1);
  }
  CostMachine machine = costMachineOf(topology, names, ranksOf, speed);
  if (machine.ranks > hosts.hosts()) joinInMemory(machine, topology.level(0));
  return machine;
}

}  // namespace tacc
