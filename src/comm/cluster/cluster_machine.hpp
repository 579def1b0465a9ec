// The hosts of a communicator as the cost model sees them.
#pragma once

#include <vector>

#include "algorithms/plan.hpp"
#include "comm/hosts.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/network_speed.hpp"
#include "topology/model/topology.hpp"

namespace tacc {

/// `hosts`: in the order in which plans go over them. `ofAllRanks`: every rank takes part, else one of each host.
CostMachine clusterMachine(const std::vector<RankIdentity>& who, const HostMap& hosts, const Topology& topology,
                           const NetworkSpeed& speed, bool ofAllRanks);

}  // namespace tacc
