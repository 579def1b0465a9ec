// Where the hosts of a communicator stand in the network, as all its ranks agree: what the sources know, else what is
// measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/hosts.hpp"
#include "comm/probe/network_probe.hpp"
#include "comm/probe/saved_survey.hpp"
#include "core/environment.hpp"
#include "topology/model/topology.hpp"

namespace tacc {

struct NetworkMap {
  std::shared_ptr<const Topology> topology;
  bool isMeasured = false;  // now, by the ranks: it may come out otherwise the next time
};

/// What a survey must know of the network between hosts.
struct SurveyedNetwork {
  std::string transport;  // what carries messages; its name
  RingSpeeds ring;        // of the hosts in the order of their first ranks: from that follows how long messages must be
  bool isAnew = false;    // measured also where an earlier job has, and among few hosts; hosts tell of their inside
};

/// Collective. `probe`: null where this rank is not the first of its host. Throws taccInvalidUsage when the sources on
/// two hosts say different things, naming both; what a source that was forced throws; and what measuring throws. Where
/// a source groups the hosts, and figures are missing, these are measured. Only few hosts, or hosts that a source says
/// are all alike: a topology of one level above the hosts. What an earlier job measured and kept is not measured again,
/// unless a source says by now that the hosts are grouped otherwise.
NetworkMap surveyNetwork(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const HostMap& hosts, int rank,
                         const Environment& environment, NetworkProbe* probe, const SurveyedNetwork& network);

/// The numbers of `hosts` in the order of the topology. Hosts that it does not know come last, in their own order;
/// several of one name follow one another.
std::vector<int> walkOver(const Topology& topology, const HostMap& hosts, const std::vector<RankIdentity>& who);

}  // namespace tacc
