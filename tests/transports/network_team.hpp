// A team of forked processes, each with a transport, for the tests of network transports.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "transports/network_transport.hpp"

namespace tacc::test {

/// What no test should come near: a hang becomes a failure.
inline constexpr std::chrono::seconds longestWait{20};

/// One process of a team.
class NetworkMember {
 public:
  /// `socket` leads to the process that started the team.
  NetworkMember(int rank, int ranks, int socket) : rank_(rank), ranks_(ranks), socket_(socket) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Everybody's contribution, by rank. A process that has died contributes nothing.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own,
                                             const std::function<void()>& meanwhile = nullptr) const;
  /// Returns when all have come, or have died.
  void meet() const { gather({}); }
  /// The same, and makes progress until then. Errors of the transport are ignored.
  void meet(NetworkTransport& transport) const;
  /// A new transport of that kind which knows its peers.
  std::unique_ptr<NetworkTransport> connect(const NetworkTransportKind& kind) const;

 private:
  int rank_;
  int ranks_;
  int socket_;
};

/// Runs `body` in `ranks` processes; it returns whether all is well there. The libraries are used in the children only:
/// they do not survive a fork. `mayDie`: that rank's end does not count.
void runTeam(int ranks, const std::function<bool(const NetworkMember&)>& body, int mayDie = -1);

/// Progresses until all requests are done. Throws after longestWait.
void complete(NetworkTransport& transport, std::span<const NetworkRequest> requests);
void complete(NetworkTransport& transport, const NetworkRequest& request);

/// `bytes` bytes that depend on `seed`.
std::vector<std::byte> patternOf(std::size_t bytes, unsigned seed);

/// The kinds that this build has and this machine can make.
std::vector<NetworkTransportKind> usableKinds();

/// Sends a byte to every peer and waits for theirs: afterwards everybody is connected to everybody.
void greet(NetworkTransport& transport, const NetworkMember& member, std::uint32_t tag);

}  // namespace tacc::test

namespace tacc {
/// For GoogleTest's messages.
inline void PrintTo(const NetworkTransportKind& kind, std::ostream* stream) { *stream << kind.name; }
}  // namespace tacc
