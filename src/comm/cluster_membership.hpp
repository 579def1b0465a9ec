// Joining ranks of several hosts: their nodes, a transport that works between all of them, and the control plane.
#pragma once

#include <memory>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "core/environment.hpp"

namespace tacc {

/// Where the transport may come from, besides a new one; null: nothing.
struct TransportSources {
  PluginTable* plugin;          // that the program brought
  const LentConnections* lent;  // on all ranks or on none
};

/// Collective over all ranks of `bootstrap`; all agree, or all fail with the same sentence. `who`: by rank.
ClusterMembership joinCluster(std::unique_ptr<Bootstrap> bootstrap, std::vector<RankIdentity> who, int rank,
                              const CommConfig& config, const TransportSources& sources,
                              const Environment& environment);

}  // namespace tacc
