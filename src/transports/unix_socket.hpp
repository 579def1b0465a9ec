// Unix sockets: their addresses, whose process is at the other end, and descriptors that come over them.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "transports/file_descriptor.hpp"

namespace tacc {

/// A name in the abstract namespace of unix sockets, as a socket address. It is no file, so nothing is left behind, and
/// it is seen by all processes of the same network namespace.
class AbstractAddress {
 public:
  /// `name` has at most 107 bytes.
  explicit AbstractAddress(const std::string& name) noexcept
      : size_(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path + 1, name.data(), name.size());  // the zero before it means: abstract
  }

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const noexcept { return size_; }

 private:
  sockaddr_un address_{};
  socklen_t size_;
};

// The kernel says whose process is at the other end (SO_PEERCRED), and nobody can pretend.

/// The effective user id of the process at the other end of a connected unix socket: as it was when that process
/// connected, or, seen by who connected, when it called listen(). Nothing where the kernel does not tell. A user who
/// has no number in this process's user namespace reads as the overflow number, 65534.
std::optional<uid_t> userOfPeer(int unixSocket) noexcept;

/// Whether that is this process's own effective user. Root is no exception. False where the kernel does not tell.
bool isSameUser(int unixSocket) noexcept;

/// "a process of user 1001 is at the other end, and this process is of user 1000", for messages.
std::string describeUsers(int unixSocket);

/// The descriptors that came with a message, out of what recvmsg() has filled in: they are this process's own from then
/// on. It is called with TakenStandardNumbers, as they may be of a file that another rank of this process has a claim
/// on.
inline std::vector<FileDescriptor> takeDescriptors(msghdr& message) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace tacc
