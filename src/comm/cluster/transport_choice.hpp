// Which transport the ranks of a communicator use between hosts: all of them the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/communicator.hpp"
#include "comm/hosts.hpp"
#include "core/fabric_device.hpp"
#include "transports/mpi/plugin_table.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

struct ChosenTransport {
  std::unique_ptr<NetworkTransport> transport;
  std::string name;  // of its kind
};

/// Collective. The kind that `forced` names (TACC_TRANSPORT); else the first that works on all ranks: in the registry's
/// order those that have found a network better than TCP, if some host has a card for one; then those for TCP.
/// With options.encrypts tacc's own TCP alone. `hasPortRange`: TACC_PORT_RANGE is set here; where it is on any rank, no
/// kind that would listen at other ports is tried for TCP.
/// Throws taccInvalidUsage for an unknown name or one that cannot encrypt, taccSystemError when nothing works
/// everywhere.
ChosenTransport chooseTransport(Bootstrap& bootstrap, const std::vector<RankIdentity>& who,
                                const NetworkOptions& options, PluginTable* plugin, const std::string& forced,
                                bool hasPortRange = false);

/// Collective; at most a few exchanges. The connections of the communicator that this one is split off, if all ranks
/// have `lent` with equal `settings`, and their kind can be shared; else an empty choice, on all ranks.
ChosenTransport shareTransport(Bootstrap& bootstrap, const LentConnections* lent, const std::string& settings,
                               const NetworkOptions& options);

}  // namespace tacc
