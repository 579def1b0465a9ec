// What the ranks of a communicator tell each other besides data, over the connections that init leaves open: who has
// failed, left or died, and, when an operation does not end, who is to blame.
//
// The connections are a star around rank 0, or a tree: what a rank announces is handed on along all of them, once each.
// Nothing runs by itself: poll() is called by ranks that wait. So a rank that computes does not answer, and that is
// what the others are told of it; those behind it are not heard meanwhile either, and are not blamed for that.
//
// The inquest: a rank whose operation has timed out tells rank 0; rank 0 asks all ranks what they are doing, waits 0.4
// seconds, and tells all what follows (inquest.hpp). Every rank then fails with the same sentence.
#pragma once

#include <poll.h>

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/control/control_tree.hpp"
#include "comm/control/inquest.hpp"
#include "comm/hosts.hpp"
#include "core/error.hpp"

namespace tacc {

class ControlPlane {
 public:
  /// `tree`: as Bootstrap::releaseTree() gives it.
  ControlPlane(int rank, std::vector<RankIdentity> who, ControlTree tree);
  /// Says farewell, if that has not been done.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// Adds what poll() should be called for. Thread safe.
  void addDescriptors(std::vector<pollfd>& sockets) const;

  /// Reads and answers. `describe`: what this rank is doing. Throws the Error that another rank announced, or the
  /// verdict of an inquest; once there was one, every later call throws it too. Thread safe.
  void poll(const std::function<RankState()>& describe);

  /// Tells all ranks that this one has failed, once; that memory has run out is told without any. Thread safe.
  void announce(const Error& error) noexcept;

  /// Tells all ranks that this one leaves, once; what they tell is still read. Thread safe.
  void sayFarewell() noexcept;
  /// Nobody is left to be heard: all others have left, died or were cut off. Thread safe.
  bool isAlone() const;

  /// Whether rank 0 has asked what this rank is doing: it lives, and its verdict is due. Thread safe.
  bool awaitsVerdict() const;
  /// This rank's operation has timed out: begins an inquest. A later poll() throws the verdict. `doing`: as in
  /// RankState.
  void reportStuck(const std::string& doing);

  /// The first rank that died without farewell, or whose connection the network gave up; or nothing. Thread safe.
  std::optional<int> deadRank() const;
  /// "rank 3 (process 123 on host b) has died", or that the network has lost it, of that rank; or nothing. Thread safe.
  std::optional<std::string> describeDeath() const;
  /// A rank among `awaited` that has left, or nothing. Thread safe.
  std::optional<int> leftRank(const std::vector<int>& awaited) const;

  /// "rank 3 (process 123 on host b)".
  std::string nameOf(int rank) const;
  /// The same of rank 0, with the gateways between it and this rank.
  std::string nameOfRankZero() const;

 private:
  enum class Presence : std::uint8_t {
    here,
    left,
    dead,
    cutOff,  // behind one that is gone
    lost,    // the network gave up its connection
  };
  struct Notice {
    std::int32_t rank;
    Presence how;
  };
  struct Link {
    Channel channel;
    int rank;                 // at the other end
    std::vector<int> behind;  // other ranks that are reached by way of it; of the one to the parent: unused
    bool isUp;                // to the parent
  };

  void pollAll(const std::function<RankState()>& describe);
  void drain(Link& link, const std::function<RankState()>& describe);
  void handle(Link& link, const Message& message, const std::function<RankState()>& describe);
  void handleFailure(const Link& from, int origin, std::span<const std::byte> failure);
  void handleVerdict(const Message& message);
  void handleNotices(const Link& from, const Message& message);
  void handleAnswer(const Message& message);
  void markGone(int rank, Presence how);
  void learnGone(int rank, Presence how);
  void markClosed(const Link& link, Presence how);
  void spreadNotices();
  bool isTop() const noexcept;
  /// False when there was no memory for it, or the connection is broken.
  bool sendTo(Link& link, MessageKind kind, const Payload& payload) noexcept;
  void sendUp(MessageKind kind, const Payload& payload) noexcept;
  void sendDown(MessageKind kind, const Payload& payload) noexcept;
  void leave() noexcept;
  void openInquest();
  void concludeInquest(RankState own);

  mutable std::mutex mutex_;
  int rank_;
  std::vector<RankIdentity> who_;
  std::vector<int> route_;    // to rank 0
  std::vector<int> parents_;  // rank 0 only: by rank
  std::vector<Link> links_;
  std::vector<Presence> presence_;
  std::vector<Notice> upward_, downward_;  // not yet sent
  std::optional<Inquest> inquest_;
  bool hasLeft_ = false;
  bool hasFailed_ = false;     // this rank announced, or was told
  bool wasAsked_ = false;      // by rank 0, in an inquest
  std::optional<Error> told_;  // what poll() threw
};

}  // namespace tacc
