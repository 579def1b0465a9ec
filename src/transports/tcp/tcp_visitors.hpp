// Those who have connected to a rank's TCP port and have not yet shown who they are: each is challenged, and a good
// answer makes it a guest (admission.hpp).
#pragma once

#include <deque>
#include <optional>

#include "transports/admission.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
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

  explicit TcpVisitors(TcpCredentials& credentials);
  TcpVisitors(const TcpVisitors&) = delete;
  TcpVisitors& operator=(const TcpVisitors&) = delete;

  /// At `host` there is a rank.
  void addHost(const InetAddress::V6& host) { admission_.addHost(host); }

  /// The next of those who wait at `listener`: its number, and its descriptor to watch. Nothing when nobody waits, or
  /// when isShort(). Throws taccSystemError when that lasts.
  std::optional<int> accept(int listener);
  /// This process had no descriptor for the last who wanted to come, and no visitor to send away for one: they wait,
  /// until reopensAt().
  bool isShort() const noexcept { return !admission_.isOpen(); }
  Admission::Clock::time_point reopensAt() const noexcept { return admission_.reopensAt(); }
  int descriptorOf(int visitor) const { return admission_.descriptorOf(visitor); }
  /// Reads from a visitor. One that has proven who it is becomes a guest and is no visitor any more; one that says
  /// something else is dismissed, and the log names it.
  void listen(int visitor) { admission_.hear(visitor); }
  /// The next guest, if there is one.
  std::optional<Guest> nextGuest();
  bool isEmpty() const noexcept { return admission_.isEmpty(); }
  /// Dismisses those who have been silent for too long.
  void dismissSilent() { admission_.dismissSilent(); }

 private:
  class Visitor;

  TcpCredentials& credentials_;
  std::deque<Guest> guests_;
  Admission admission_;
};

}  // namespace tacc
