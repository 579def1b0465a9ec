#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tacc::bench {

/// A virtual cluster as --cluster describes it. Host 1, 2, ... are in supernode 1 up to `hosts`, and so on.
struct ClusterShape {
  int supernodes = 1;
  int hosts = 1;       ///< in each supernode
  int hostMbit = 0;    ///< of a host's link, in each direction; 0: no limit
  int uplinkMbit = 0;  ///< of a supernode's link to the core

  /// From SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT. Throws std::invalid_argument.
  static ClusterShape parse(const std::string& text);
  std::string text() const;
  int totalHosts() const { return supernodes * hosts; }
  int supernodeOf(int host) const { return (host - 1) / hosts; }
};

/// The shortest time in which an allreduce of `bytes` can be done by ranks on these hosts, in seconds: reduced inside
/// each host first, 2 n (h-1)/h bytes must pass each of h hosts' links, and likewise for supernodes and uplinks.
/// Headers are not counted. 0 if no link that is used has a rate.
double allReduceNetworkBound(const ClusterShape& shape, std::vector<int> hostsOfRanks, size_t bytes);

/// How many calls of `bytes` use up what the links let pass at once, so that later ones find every link at its rate.
/// Calls of some hundred bytes never use it up; they are as many as those of 8 KiB. 0 where no link has a rate.
int callsPerBurst(const ClusterShape& shape, size_t bytes);

}  // namespace tacc::bench
