// A datagram of somebody who does not belong there, with descriptors or without.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "transports/unix_socket.hpp"

namespace tacc::test {

/// Sends `bytes` and so many copies of `copied`; false when nobody is there or its queue is full.
inline bool sendAsStranger(int socket, const AbstractAddress& address, std::span<const std::byte> bytes,
                           std::size_t descriptors, int copied = STDERR_FILENO) {
  std::vector<std::byte> control(CMSG_SPACE(descriptors * sizeof(int)));
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address.get());
  message.msg_namelen = address.size();
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const std::vector<int> copies(descriptors, copied);
    std::memcpy(CMSG_DATA(rights), copies.data(), descriptors * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace tacc::test
