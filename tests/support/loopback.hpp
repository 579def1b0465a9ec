// The loopback interface of a network namespace that the test has made, for connections that can be cut.
#pragma once

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "transports/file_descriptor.hpp"

namespace tacc::test {

inline bool setLoopback(bool isUp) {
  ifreq interface {};
  std::strcpy(interface.ifr_name, "lo");
  interface.ifr_flags = isUp ? IFF_UP | IFF_RUNNING : 0;
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &interface) == 0;
}

}  // namespace tacc::test
