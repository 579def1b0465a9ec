// Those who have connected to a rank and have not yet shown who they are.
//
// Each is challenged, and has some seconds for its proof. How many there may be at a time is bounded. At the bound one
// has to go that comes from no rank's host, or else the one that has been silent for the longest: so a flood from
// elsewhere pushes out nobody else, and one from a rank's own host would have to bring more connections than there is
// room for while a rank answers its challenge. A rank that is pushed out all the same connects again (tcp_attempt.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
#include "transports/refusals.hpp"
#include "transports/tcp/tcp_credentials.hpp"
#include "transports/tcp/tcp_greeting.hpp"

namespace tacc {

class TcpVisitors {
 public:
  /// A rank that has proven itself, and waits for an answer.
  struct Guest {
    int rank;
    FileDescriptor socket;
    TcpChallenge challenge;
    TcpHello hello;
  };

  explicit TcpVisitors(TcpCredentials& credentials) : credentials_(credentials), refusals_(credentials.rank()) {}

  /// At `host` there is a rank.
  void addHost(const InetAddress::V6& host) { hosts_.insert(host); }

  /// The next of those who wait at `listener`: its number, and its descriptor to watch. Nothing when nobody waits, or
  /// when isShort(). Throws taccSystemError when that lasts.
  std::optional<int> accept(int listener);
  /// This process had no descriptor for the last who wanted to come, and no visitor to send away for one: they wait.
  bool isShort() const noexcept { return isShort_; }
  int descriptorOf(int visitor) const { return visitors_.at(visitor).socket.get(); }
  /// Reads from a visitor. One that has proven who it is becomes a guest and is no visitor any more; one that says
  /// something else is dismissed, and the log names it.
  void listen(int visitor);
  /// The next guest, if there is one.
  std::optional<Guest> nextGuest();
  bool isEmpty() const noexcept { return visitors_.empty(); }
  /// Dismisses those who have been silent for too long.
  void dismissSilent();

 private:
  struct Visitor {
    FileDescriptor socket;
    std::optional<InetAddress> from;
    bool isNear;  // from a rank's host
    std::chrono::steady_clock::time_point until;
    TcpChallenge challenge;
    TcpHello hello;
    std::size_t bytes = 0;  // of it
  };
  using Visitors = std::map<int, Visitor>;

  bool makeRoom(const char* why);
  void checkShortage();
  bool isGenuineHello(const Visitor& visitor);
  void dismiss(Visitors::iterator visitor, const char* why);

  TcpCredentials& credentials_;
  std::set<InetAddress::V6> hosts_;
  int next_ = 0;
  bool isShort_ = false;
  std::optional<std::chrono::steady_clock::time_point> shortSince_;
  Visitors visitors_;    // oldest first
  std::size_t far_ = 0;  // of them, from no rank's host
  std::deque<Guest> guests_;
  Refusals refusals_;
};

}  // namespace tacc
