// Descriptors that came with a message over a unix socket.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "transports/file_descriptor.hpp"

namespace tacc {

/// Takes them out of what recvmsg() has filled in: they are this process's own from then on.
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
