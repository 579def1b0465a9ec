// Where the hosts of a communicator stand in the network, as all its ranks agree: what the sources know, else what is
// measured.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.hpp"
#include "comm/bootstrap.hpp"
#include "comm/hosts.hpp"
#include "comm/network_probe.hpp"
#include "topology/topology.hpp"

namespace tacc {

struct NetworkMap {
  std::shared_ptr<const Topology> topology;
  bool isMeasured = false;  // now, by the ranks: it may come out otherwise the next time
};

/// What the ring of the hosts carried between two of them, bytes/s: from that follows how long messages must be.
struct RingSpeeds {
  double slowest, fastest;
};

/// Collective. `probe`: null where this rank is not the first of its host. Throws taccInvalidUsage when the sources on
/// two hosts say different things, naming both; what a source that was forced throws; and what measuring throws. Where
/// a source groups the hosts, and figures are missing, these are measured. Only few hosts, or hosts that a source says
/// are all alike: a topology of one level above the hosts.
NetworkMap surveyNetwork(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const HostMap& hosts, int rank,
                         const Environment& environment, NetworkProbe* probe, RingSpeeds speeds);

/// The numbers of `hosts` in the order of the topology. Hosts that it does not know come last, in their own order;
/// several of one name follow one another.
std::vector<int> walkOver(const Topology& topology, const HostMap& hosts, const std::vector<RankIdentity>& who);

}  // namespace tacc
