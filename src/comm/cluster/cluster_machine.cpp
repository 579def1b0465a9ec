#include "comm/cluster/cluster_machine.hpp"

#include <string>

#include "selection/network_selector.hpp"

namespace tacc {
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
