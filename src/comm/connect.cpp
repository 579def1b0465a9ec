#include "comm/connect.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/rendezvous_address.hpp"
#include "transports/tcp.hpp"

namespace tacc {
namespace {

FileDescriptor makeSocket(int family) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() && errno != EAFNOSUPPORT) {
    failErrno("cannot make a socket to reach rank 0 (if too many files are open, raise ulimit -n)");
  }
  return socket;
}

std::string describe(int code) { return code == ECONNREFUSED ? "connection refused" : std::strerror(code); }

int pendingError(int fd) noexcept {
  int code = 0;
  socklen_t bytes = sizeof code;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) == 0 ? code : errno;
}

/// Where nobody listens, and the port is one that the kernel also gives to outgoing connections, a socket can get
/// connected with itself.
bool isConnectedToItself(int fd) noexcept {
  const auto near = InetAddress::ofSocket(fd);
  return near && near == InetAddress::ofPeer(fd);
}

}  // namespace

Attempt connectUnix(const std::string& name) {
  FileDescriptor socket = makeSocket(AF_UNIX);
  const RendezvousAddress address(name);
  int result;
  do {
    result = ::connect(socket.get(), address.get(), address.size());
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {std::move(socket), "", false};
  if (errno == EAGAIN) return {FileDescriptor(), "too many connect at once", true};
  return {FileDescriptor(), errno == ECONNREFUSED ? "nobody listens there" : describe(errno), false};
}

Attempt connectTcp(const InetAddress& address, double seconds, const Deadline& deadline, const Interrupt& interrupt) {
  sockaddr_storage storage;
  const socklen_t bytes = address.fill(storage);
  FileDescriptor socket = makeSocket(storage.ss_family);
  if (!socket.valid()) return {FileDescriptor(), describe(EAFNOSUPPORT), false};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return {FileDescriptor(), describe(errno), false};
    const Deadline end = std::min(deadline, Deadline(seconds));
    std::vector<pollfd> sockets{{socket.get(), POLLOUT, 0}};
    while (sockets[0].revents == 0) {
      if (end.passed()) return {FileDescriptor(), fmt::format("no answer within {:.3g} s", seconds), false};
      waitFor(sockets, interrupt, end);
    }
    if (const int code = pendingError(socket.get()); code != 0) return {FileDescriptor(), describe(code), false};
  }
  if (isConnectedToItself(socket.get())) return {FileDescriptor(), describe(ECONNREFUSED), false};
  tuneTcp(socket.get());
  return {std::move(socket), "", false};
}

}  // namespace tacc
