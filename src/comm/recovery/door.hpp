// The socket that every rank of a communicator keeps listening, so that survivors find each other when the connections
// over which they met have gone with a rank: from the beginning, or, where other means tell whether a rank lives, from
// its first agreement on.
//
// Strangers find it too (admission.hpp).
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/meeting_link.hpp"
#include "transports/admission.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/file_identity.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

class Door {
 public:
  /// Opens the socket: TCP on a free port of this host, reached by the others at `address`, or unix when `address` is
  /// null. Throws taccSystemError.
  Door(int rank, const InetAddress* address);
  /// The same at a unix socket of that name, which nobody but the communicator's ranks can know beforehand.
  Door(int rank, const std::string& name);
  /// The program may have closed all descriptors, and have another file at the number: that one stays.
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  const SurvivorPlace& place() const noexcept { return place_; }

  /// From now on those who prove to be of `members`, or bring word of one, join `visitors`. Both must live until
  /// stopReceiving() ends that; who has proven nothing by then is shown out.
  void receiveFor(const MeetingMembers& members, std::list<std::unique_ptr<MeetingLink>>& visitors);
  void stopReceiving() noexcept;

  /// Adds what is waited for: somebody may stand there, or speak.
  void addDescriptors(std::vector<pollfd>& sockets) const;
  /// `sockets`: those that addDescriptors() added, with their revents. Hears those who stand there, shows out who has
  /// proven nothing for too long, and lets in who waits.
  void serve(std::span<const pollfd> sockets);

  /// errno's code for the last who could not be let in for want of descriptors; 0: there was none.
  int shortage() const noexcept { return admission_ ? admission_->lastShortage() : 0; }

  /// Keeps the socket until the process ends: to others it must not look as if this rank had ended.
  void keepOpen() noexcept;

 private:
  class Caller;

  void openUnix(const std::string& name);
  void listen();

  int rank_;
  SurvivorPlace place_{};
  FileDescriptor listener_;
  FileId file_{};
  const MeetingMembers* members_ = nullptr;  // null: closed
  std::list<std::unique_ptr<MeetingLink>>* visitors_ = nullptr;
  std::optional<Admission> admission_;  // from the first agreement on, when it is known who the others are
};

}  // namespace tacc
