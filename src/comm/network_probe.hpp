// Measures the network once, when a communicator is formed: one rank of every host sends to the next host and receives
// from the one before, all at the same time, as a ring does.
#pragma once

#include <vector>

#include "selection/network_speed.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

/// Collective over `ring`, ranks of different hosts, `rank` among them. Throws taccTimeout after `seconds`, and what
/// the transport throws. What was measured is this rank's own view.
NetworkSpeed probeNetwork(NetworkTransport& transport, const std::vector<int>& ring, int rank, double seconds);

/// The slowest of all views, so that all ranks go by the same.
NetworkSpeed slowestOf(const std::vector<NetworkSpeed>& views);

}  // namespace tacc
