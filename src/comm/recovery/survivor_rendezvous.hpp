// How the ranks of a communicator agree when some of them may have died: the survivors' way to each other, which does
// not need the connections over which they joined.
//
// From the beginning every rank keeps a socket listening (door.hpp); agreement.hpp is what happens there. Only ranks of
// one host that share claims and memory with a communicator from which theirs was split off open theirs when they first
// agree, at a name that all know: who lives is seen without it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/bootstrap/wait.hpp"
#include "comm/control/member_watch.hpp"
#include "comm/recovery/agreement.hpp"
#include "comm/recovery/door.hpp"

namespace tacc {

class SurvivorRendezvous {
 public:
  /// Opens the socket: TCP on a free port of this host, reached by the others at `address`, or unix when `address` is
  /// null. Throws taccSystemError.
  SurvivorRendezvous(int rank, const InetAddress* address);
  /// Opens nothing before the first agreement. `secret`: of these ranks alone. `presence`: of all of them.
  SurvivorRendezvous(int rank, int ranks, const Secret& secret, bool encrypts,
                     std::shared_ptr<const Presence> presence);
  /// A rank that went on with others, while somebody may not know, goes on listening until its process ends: who finds
  /// nobody there takes this rank for dead, and might decide without it.
  ~SurvivorRendezvous();
  SurvivorRendezvous(const SurvivorRendezvous&) = delete;
  SurvivorRendezvous& operator=(const SurvivorRendezvous&) = delete;

  /// Only where it is open from the beginning.
  const SurvivorPlace& place() const noexcept { return door_->place(); }
  /// Where all ranks listen, by rank, the secret that they share, and whether what they tell each other is encrypted:
  /// it holds the secret of the next communicator.
  void setPlaces(std::vector<SurvivorPlace> places, const Secret& secret, bool encrypts = false);

  /// Collective over those that live: the same decision on all that return, with this rank among the members. Throws as
  /// Agreement::run(), and taccRemoteError where the others have gone on without this rank.
  Decision agree(const AgreementRequest& request);

  /// For waiting for these ranks, of which this one is among: the lowest watches all others, who watch the lowest.
  MemberWatch watch(const std::vector<int>& members) const;

  /// From any thread: agree() ends with taccRemoteError, also later ones.
  void interrupt() noexcept { interrupt_.raise(); }
  /// For tests: nobody wants to see any more that this rank lives, as when its process ends.
  void forget() noexcept { memory_.isWanted = false; }
  /// For tests.
  void observe(MeetingObserver observer) { observer_ = std::move(observer); }

 private:
  std::optional<Door> door_;  // empty: not open yet
  MeetingMembers members_;
  AgreementMemory memory_;
  Interrupt interrupt_;
  MeetingObserver observer_;
};

}  // namespace tacc
