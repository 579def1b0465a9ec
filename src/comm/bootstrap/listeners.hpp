// The listening sockets of rank 0, and of gateways: a unix one for the ranks of this host, and a TCP one for those of
// others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/unique_id.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {

struct Listener {
  FileDescriptor socket;
  bool isTcp;
};

/// Listens where the id says: at its port of all addresses of this host, or, with TACC_SOCKET_IFNAME, of those that the
/// interfaces named there have and the id names. Nothing when another process of this host does so already for the same
/// id. The unix one is always first: it listens before the TCP one does, so a rank of this host that has reached the
/// TCP one finds the unix one as well. Throws taccInvalidUsage when the id names another host, taccSystemError when its
/// port is taken, or its unix name is by a process of another user.
std::optional<std::vector<Listener>> listenFor(const UniqueIdContents& id);

/// The same for a gateway, at a unix name and at any free port of TCP. Nothing when another process has the name.
std::optional<std::vector<Listener>> listenAsGateway(const std::string& name);

}  // namespace tacc
