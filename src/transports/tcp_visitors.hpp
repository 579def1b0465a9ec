// Those who have connected to a rank and have not yet shown that they are of the job.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include "transports/file_descriptor.hpp"
#include "transports/tcp_greeting.hpp"

namespace tacc {

class TcpVisitors {
 public:
  struct Guest {
    int rank;
    FileDescriptor socket;
  };

  TcpVisitors(int rank, const TcpKey& key, std::size_t ranks) : rank_(rank), key_(key), ranks_(ranks) {}

  /// The next of those who wait at `listener`: its number, and its descriptor to watch. Nothing when nobody waits.
  /// Where too many are silent, the oldest has to go. Throws taccSystemError when there is no descriptor for the next
  /// one for a while.
  std::optional<int> accept(int listener);
  int descriptorOf(int visitor) const { return visitors_.at(visitor).socket.get(); }
  /// Reads from a visitor. Whoever has shown its key becomes a guest and is no visitor any more; whoever says something
  /// else is dismissed, and the log names it.
  std::optional<Guest> listen(int visitor);
  bool isEmpty() const noexcept { return visitors_.empty(); }
  /// Dismisses those who have been silent for too long.
  void dismissSilent();

 private:
  struct Visitor {
    FileDescriptor socket;
    std::chrono::steady_clock::time_point until;
    TcpHello hello;
    std::size_t bytes = 0;  // of it
  };
  void dismiss(std::map<int, Visitor>::iterator visitor, const char* why);

  int rank_;
  TcpKey key_;
  std::size_t ranks_;
  int next_ = 0;
  std::optional<std::chrono::steady_clock::time_point> shortSince_;  // no descriptor for the next one
  std::map<int, Visitor> visitors_;                                  // oldest first
};

}  // namespace tacc
