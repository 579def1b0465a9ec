// How the survivors of a communicator find each other again after ranks have died, rank 0 perhaps among them.
//
// From the beginning every rank keeps a socket listening. A rank that shrinks tries the ranks below its own: the lowest
// that lives is the leader. The leader waits for all others: for each until it has come, or until nobody listens where
// it did, which is how the dead are told from the slow. Then it gives everybody the id of a new communicator and says
// who survives. Every connection proves that it knows the old id's secret.
//
// A star, also where ranks joined in a tree: the tree died with the communicator, and nobody knows which of its
// gateways live. For each survivor the leader sends 360 bytes and a bit for each old rank, and takes less than 0.1 ms
// of processor time (docs/failures.md).
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "comm/handshake.hpp"
#include "comm/wait.hpp"
#include "tacc/tacc.h"
#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

/// Where a rank's socket listens. Plain, to be sent to the others.
struct MusterPlace {
  std::array<char, 40> name;  // of a unix socket in the abstract namespace
  InetAddress::V6 address;    // of TCP; all zero: over the unix socket only
  std::uint16_t port;
};

class Muster {
 public:
  /// Opens the socket: TCP on a free port of this host, reached by the others at `address`, or unix when `address` is
  /// null. Throws taccSystemError.
  Muster(int rank, const InetAddress* address);
  const MusterPlace& place() const noexcept { return place_; }
  /// Where all ranks listen, by rank, and the secret that they share.
  void setPlaces(std::vector<MusterPlace> places, const Secret& secret);

  struct Outcome {
    taccUniqueId id;
    std::vector<int> survivors;  // old ranks in the order of their new ones
  };
  /// Collective over the survivors. `excluded`: by rank, those that are not wanted even if they live; equal on all.
  /// Ranks that neither come nor are found dead within `seconds` are left behind.
  Outcome gather(const std::vector<bool>& excluded, double seconds);

  /// From any thread.
  void interrupt() noexcept { interrupt_.raise(); }

 private:
  struct Candidate;
  struct Reached {
    std::size_t index;  // of the rank
    FileDescriptor socket;
  };
  /// The first of these ranks that listens; no socket when none does.
  Reached reach(std::span<const int> ranks, const Deadline& deadline) const;
  std::vector<bool> listenStill(std::span<const int> ranks, const Deadline& deadline) const;
  Outcome lead(const std::vector<bool>& excluded, const Deadline& deadline);
  void accept(std::list<Candidate>& candidates) const;
  /// False when it has gone.
  bool hear(Candidate& candidate, std::vector<bool>& settled) const;
  void settleDead(std::vector<bool>& settled, const Deadline& deadline) const;
  Outcome conclude(std::list<Candidate>& candidates, const std::vector<bool>& excluded) const;
  /// False when the other end leads no more.
  bool follow(FileDescriptor leader, const Deadline& deadline, Outcome& outcome) const;

  int rank_;
  MusterPlace place_{};
  FileDescriptor listener_;
  std::vector<MusterPlace> places_;
  Secret secret_{};
  Interrupt interrupt_;
};

}  // namespace tacc
