#include "transports/unix_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tacc {

std::optional<uid_t> userOfPeer(int unixSocket) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(unixSocket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || bytes != sizeof peer)
    return std::nullopt;
  if (peer.uid == static_cast<uid_t>(-1)) return std::nullopt;  // not connected
  return peer.uid;
}

bool isSameUser(int unixSocket) noexcept { return userOfPeer(unixSocket) == ::geteuid(); }

std::string describeUsers(int unixSocket) {
  const std::optional<uid_t> peer = userOfPeer(unixSocket);
  return fmt::format("{} is at the other end, and this process is of user {}",
                     peer ? fmt::format("a process of user {}", *peer) : "a process of an unknown user", ::geteuid());
}

}  // namespace tacc
