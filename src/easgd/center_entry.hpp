// How a worker comes to a center: it looks for the center's process at every place that the id names, both prove that
// they know the secret, and the worker gets a seat.
#pragma once

#include <cstddef>
#include <string>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "easgd/center_protocol.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {

/// The center's process, at the other end of a connection.
struct CenterLink {
  Channel channel;
  Introduction keeper;
  bool elsewhere = false;  // reached over TCP

  /// "process 4711 on host a, stopped (SIGSTOP)", as far as it can be told from here.
  std::string describe() const { return describeState(keeper, elsewhere); }
  /// Throws taccRemoteError: it has ended.
  [[noreturn]] void failEnded() const;
};

struct CenterEntry {
  CenterLink link;
  CenterSeat seat;
  FileDescriptor memory;  // where seat.hasMemory
};

/// `wantsMemory`: to map the center, where it is on this host. Throws taccRemoteError where nobody listens at any of
/// the places, or the center refuses; taccTimeout with a list of what was tried; taccInvalidUsage for another count or
/// version. `timeout` 0: tries for ever.
CenterEntry enterCenter(const UniqueIdContents& id, std::size_t count, bool wantsMemory, double timeout);

}  // namespace tacc
