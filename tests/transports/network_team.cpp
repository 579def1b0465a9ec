#include "network_team.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <stdexcept>

#include "core/error.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t longestPacket = 64 * 1024;

std::vector<std::byte> receivePacket(int socket) {
  std::vector<std::byte> packet(longestPacket);
  const ssize_t bytes = ::recv(socket, packet.data(), packet.size(), 0);
  packet.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return packet;
}

void sendPacket(int socket, std::span<const std::byte> packet) {
  (void)::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL);  // nobody reads what a dead process would get
}

/// Collects a packet from every child and gives all to each, until all have gone. A packet is "+" and the
/// contribution, so that the end of a child is told from an empty contribution.
void serve(std::vector<int>& sockets) {
  for (bool someLive = true; someLive;) {
    someLive = false;
    std::vector<std::vector<std::byte>> packets;
    for (const int socket : sockets) {
      packets.push_back(receivePacket(socket));
      if (!packets.back().empty()) someLive = true;
    }
    for (const int socket : sockets)
      for (const std::vector<std::byte>& packet : packets)
        sendPacket(socket, packet.empty() ? std::vector(1, std::byte{'-'}) : packet);
  }
}

}  // namespace

std::vector<std::vector<std::byte>> NetworkMember::gather(std::span<const std::byte> own,
                                                          const std::function<void()>& meanwhile) const {
  std::vector<std::byte> packet(1, std::byte{'+'});
  packet.insert(packet.end(), own.begin(), own.end());
  sendPacket(socket_, packet);
  for (pollfd answer{socket_, POLLIN, 0}; meanwhile && ::poll(&answer, 1, 0) == 0;) meanwhile();
  std::vector<std::vector<std::byte>> all;
  for (int rank = 0; rank < ranks_; ++rank) {
    all.push_back(receivePacket(socket_));
    if (all.back().empty()) throw std::runtime_error("the test's parent process is gone");
    all.back().erase(all.back().begin());
  }
  return all;
}

void NetworkMember::meet(NetworkTransport& transport) const {
  bool isWell = true;
  gather({}, [&] {
    try {
      if (isWell) transport.progress();
    } catch (const Error&) {
      isWell = false;
    }
  });
}

std::unique_ptr<NetworkTransport> NetworkMember::connect(const NetworkTransportKind& kind) const {
  std::unique_ptr<NetworkTransport> transport = kind.make({rank_, ranks_, {}});
  transport->setPeers(gather(transport->address()));
  return transport;
}

void runTeam(int ranks, const std::function<bool(const NetworkMember&)>& body, int mayDie) {
  std::vector<ChildProcess> children;
  std::vector<int> sockets;
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    std::fflush(nullptr);  // or the child would write it once more
    children.emplace_back([&] {
      for (const int other : sockets) ::close(other);
      ::close(ends[0]);
      ::alarm(60);  // whatever happens, no process stays
      const bool isWell = body(NetworkMember(rank, ranks, ends[1]));
      return isWell && !testing::Test::HasFailure();
    });
    ::close(ends[1]);
    sockets.push_back(ends[0]);
  }
  serve(sockets);
  for (int rank = 0; rank < ranks; ++rank) {
    const int status = children[static_cast<std::size_t>(rank)].wait();
    EXPECT_TRUE(status == 0 || rank == mayDie) << "rank " << rank << " ended with " << status;
    ::close(sockets[static_cast<std::size_t>(rank)]);
  }
}

void complete(NetworkTransport& transport, std::span<const NetworkRequest> requests) {
  const auto deadline = std::chrono::steady_clock::now() + longestWait;
  for (const NetworkRequest& request : requests) {
    while (!request.done) {
      if (!transport.progress() && std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("a message did not come");
    }
  }
}

void complete(NetworkTransport& transport, const NetworkRequest& request) {
  complete(transport, std::span(&request, 1));
}

std::vector<std::byte> patternOf(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> pattern(bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::byte& value : pattern) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<std::byte>(state >> 24);
  }
  return pattern;
}

std::vector<NetworkTransportKind> usableKinds() {
  std::vector<NetworkTransportKind> kinds;
  for (const NetworkTransportKind& kind : networkTransports()) {
    if (kind.make == nullptr || kind.name == "mpi") continue;  // what a program brings is tested with it
    std::fflush(nullptr);
    ChildProcess trial([&] { return kind.make({}) != nullptr; });
    if (trial.wait() == 0) kinds.push_back(kind);
  }
  return kinds;
}

void greet(NetworkTransport& transport, const NetworkMember& member, std::uint32_t tag) {
  const std::size_t ranks = static_cast<std::size_t>(member.ranks());
  std::vector<NetworkRequest> requests(2 * ranks);
  std::vector<std::byte> bytes(2 * ranks);
  for (int peer = 0; peer < member.ranks(); ++peer) {
    if (peer == member.rank()) continue;
    const std::size_t at = 2 * static_cast<std::size_t>(peer);
    transport.receive(peer, tag, &bytes[at], 1, requests[at]);
    transport.send(peer, tag, &bytes[at + 1], 1, requests[at + 1]);
  }
  complete(transport, requests);
}

}  // namespace tacc::test
