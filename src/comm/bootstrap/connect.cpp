#include "comm/bootstrap/connect.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

FileDescriptor makeSocket(int family) {
  FileDescriptor socket =
      ownDescriptor([&] { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!socket.valid() && errno != EAFNOSUPPORT) {
    failDescriptor("cannot make a socket to reach rank 0");
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

Attempt failedAttempt(int code) { return {FileDescriptor(), describe(code), false, false, code == ECONNREFUSED}; }

}  // namespace

bool beginTcp(const InetAddress& address, Attempt& attempt) {
  sockaddr_storage storage;
  const socklen_t bytes = address.fill(storage);
  attempt.socket = makeSocket(storage.ss_family);
  int code = EAFNOSUPPORT;
  if (attempt.socket.valid()) {
    // One that succeeds at once can be written to at once.
    if (::connect(attempt.socket.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) == 0) return true;
    if (errno == EINPROGRESS || errno == EINTR) return true;
    code = errno;
  }
  attempt = failedAttempt(code);
  return false;
}

void finishTcp(Attempt& attempt) {
  if (const int code = pendingError(attempt.socket.get()); code != 0)
    attempt = failedAttempt(code);
  else if (isConnectedToItself(attempt.socket.get()))
    attempt = failedAttempt(ECONNREFUSED);
  else
    tuneTcp(attempt.socket.get());
}

Attempt connectUnix(const std::string& name) {
  FileDescriptor socket = makeSocket(AF_UNIX);
  const AbstractAddress address(name);
  int result;
  do {
    result = ::connect(socket.get(), address.get(), address.size());
  } while (result != 0 && errno == EINTR);
  if (result == 0 && !isSameUser(socket.get())) return {FileDescriptor(), describeUsers(socket.get()), false, true};
  if (result == 0) return {std::move(socket), "", false};
  if (errno == EAGAIN) return {FileDescriptor(), "too many connect at once", true};
  const bool isRefused = errno == ECONNREFUSED;
  return {FileDescriptor(), isRefused ? "nobody listens there" : describe(errno), false, false, isRefused};
}

Attempt connectTcp(const InetAddress& address, double seconds, const Deadline& deadline, const Interrupt& interrupt) {
  return std::move(connectTcp(std::span(&address, 1), seconds, deadline, interrupt).front());
}

std::vector<Attempt> connectTcp(std::span<const InetAddress> addresses, double seconds, const Deadline& deadline,
                                const Interrupt& interrupt) {
  const Deadline end = std::min(deadline, Deadline(seconds));
  std::vector<Attempt> attempts(addresses.size());
  std::vector<std::size_t> open;  // places that have not answered
  for (std::size_t i = 0; i < addresses.size(); ++i)
    if (beginTcp(addresses[i], attempts[i])) open.push_back(i);
  while (!open.empty() && !end.passed()) {
    std::vector<pollfd> sockets;
    for (const std::size_t i : open) sockets.push_back({attempts[i].socket.get(), POLLOUT, 0});
    waitFor(sockets, interrupt, end);
    std::size_t left = 0;
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (sockets[k].revents == 0)
        open[left++] = open[k];
      else
        finishTcp(attempts[open[k]]);
    }
    open.resize(left);
  }
  for (const std::size_t i : open)
    attempts[i] = {FileDescriptor(), fmt::format("no answer within {:.3g} s", seconds), false};
  return attempts;
}

}  // namespace tacc
