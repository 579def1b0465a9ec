// What the ranks of a communicator tell each other besides data, over the connections that init leaves open: who has
// failed, left or died, and, when an operation does not end, who is to blame.
//
// A star around rank 0. Nothing runs by itself: poll() is called by ranks that wait. So a rank that computes does not
// answer, and that is what the others are told of it.
//
// The inquest: a rank whose operation has timed out tells rank 0; rank 0 asks all ranks what they are doing, waits half
// a second, and tells all who did not answer. Every rank then fails with the same sentence.
#pragma once

#include <poll.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/hosts.hpp"
#include "comm/wait.hpp"

namespace tacc {

class ControlPlane {
 public:
  /// `channels`: as Bootstrap::releaseChannels() gives them.
  ControlPlane(int rank, std::vector<RankIdentity> who, std::vector<Channel> channels);
  /// Says farewell, if that has not been done.
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  /// Adds what poll() should be called for. Thread safe.
  void addDescriptors(std::vector<pollfd>& sockets) const;

  /// Reads and answers. `describe`: what this rank is doing. Throws the Error that another rank announced, or the
  /// verdict of an inquest; once there was one, every later call throws it too. Thread safe.
  void poll(const std::function<std::string()>& describe);

  /// Tells all ranks that this one has failed, once. Thread safe.
  void announce(const Error& error) noexcept;

  /// Tells all ranks that this one leaves, once; what they tell is still read. Thread safe.
  void sayFarewell() noexcept;
  /// Nobody is left to be heard: all others have left or died, or rank 0, who would tell, has gone. Thread safe.
  bool isAlone() const;

  /// This rank's operation has timed out: begins an inquest. A later poll() throws the verdict.
  void reportStuck(const std::string& doing);

  /// The first rank that died without farewell, or nothing. Thread safe.
  std::optional<int> deadRank() const;
  /// A rank among `awaited` that has left, or nothing. Thread safe.
  std::optional<int> leftRank(const std::vector<int>& awaited) const;

  /// "rank 3 (process 123 on host b)".
  std::string nameOf(int rank) const;

 private:
  enum class Presence : std::uint8_t { here, left, dead };
  struct Inquest {
    Deadline deadline;
    std::vector<std::optional<std::string>> answers;
  };

  bool isHub() const noexcept { return rank_ == 0; }
  void pollAll(const std::function<std::string()>& describe);
  void drain(int from, const std::function<std::string()>& describe);
  void handle(int from, const Message& message, const std::function<std::string()>& describe);
  void markGone(int rank, Presence how);
  void sendTo(int rank, MessageKind kind, const Payload& payload) noexcept;
  void sendToAll(MessageKind kind, const Payload& payload, int except) noexcept;
  void leave() noexcept;
  void openInquest();
  void concludeInquest(const std::string& own);

  mutable std::mutex mutex_;
  int rank_;
  std::vector<RankIdentity> who_;
  std::vector<Channel> channels_;  // rank 0: by rank; others: one, to rank 0
  std::vector<Presence> presence_;
  std::optional<Inquest> inquest_;
  bool hasLeft_ = false;
  bool hasFailed_ = false;     // this rank announced, or was told
  std::optional<Error> told_;  // what poll() threw
};

}  // namespace tacc
