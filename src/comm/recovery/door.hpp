// The socket that every rank of a communicator keeps listening, so that survivors find each other when the connections
// over which they met have gone with a rank: from the beginning, or, where other means tell whether a rank lives, from
// its first agreement on.
//
// Strangers find it too. Until somebody has proven to be of the communicator, all there is of them is a connection:
// few at a time, for a short time, and accepted a few at a time, so that they hold up nobody.
#pragma once

#include <poll.h>

#include <chrono>
#include <list>
#include <string>

#include "comm/bootstrap/meeting_link.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
#include "transports/refusals.hpp"

namespace tacc {

class Door {
 public:
  /// Opens the socket: TCP on a free port of this host, reached by the others at `address`, or unix when `address` is
  /// null. Throws taccSystemError.
  Door(int rank, const InetAddress* address);
  /// The same at a unix socket of that name, which nobody but the communicator's ranks can know beforehand.
  Door(int rank, const std::string& name);
  const SurvivorPlace& place() const noexcept { return place_; }

  /// For poll(): somebody may stand there.
  pollfd descriptor() const noexcept;
  /// Lets in who waits, and shows out who has not proven anything for too long. References to visitors stay good until
  /// they are over.
  void serve(const MeetingMembers& members, std::list<MeetingLink>& visitors);

  /// errno's code for the last who could not be let in for want of descriptors; 0: there was none.
  int shortage() const noexcept { return shortage_; }

  /// Keeps the socket until the process ends: to others it must not look as if this rank had ended.
  void keepOpen() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void openUnix(const std::string& name);
  void listen(int rank);

  SurvivorPlace place_{};
  FileDescriptor listener_;
  Clock::time_point closedUntil_{};  // while descriptors are short
  int shortage_ = 0;
  Refusals refusals_;
};

}  // namespace tacc
