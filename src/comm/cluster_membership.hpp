// Joining ranks of several hosts: their nodes, a transport that works between all of them, and the control plane.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.hpp"
#include "comm/bootstrap.hpp"
#include "comm/cluster_communicator.hpp"

namespace tacc {

/// Collective over all ranks of `bootstrap`; all agree, or all fail with the same sentence. `who`: by rank. `plugin`:
/// what the program brought, or null.
ClusterMembership joinCluster(std::unique_ptr<Bootstrap> bootstrap, std::vector<RankIdentity> who, int rank,
                              const CommConfig& config, PluginTable* plugin, const Environment& environment);

}  // namespace tacc
