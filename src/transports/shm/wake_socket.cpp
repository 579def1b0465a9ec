#include "transports/shm/wake_socket.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "core/fork.hpp"
#include "core/per_thread.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

/// Of 15 bytes, for which a string needs no memory.
std::string socketNameOf(std::uint64_t name) {
  std::string text = "tw";
  for (int digit = 0; digit < 13; ++digit, name >>= 5) text += "abcdefghijklmnopqrstuvwxyz234567"[name & 31];
  return text;
}

/// A datagram socket in the abstract namespace. Closed with close(): no record lock stands on it.
class WakeSocket {
 public:
  WakeSocket() = default;
  ~WakeSocket() { close(); }
  WakeSocket(const WakeSocket&) = delete;
  WakeSocket& operator=(const WakeSocket&) = delete;

  void open() noexcept {
    const std::uint32_t process = processGeneration();
    if (fd_ >= 0 && process == owner_) return;
    close();
    owner_ = process;
    std::uint64_t name = 0;
    if (::getrandom(&name, sizeof name, 0) != static_cast<ssize_t>(sizeof name) || name == 0) return;
    fd_ = awayFromStandard(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd_ < 0) return;
    const AbstractAddress address(socketNameOf(name));
    if (::bind(fd_, address.get(), address.size()) != 0) return close();
    name_ = name;
  }
  int fd() const noexcept { return fd_; }
  std::uint64_t name() const noexcept { return name_; }

 private:
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    name_ = 0;
  }

  int fd_ = -1;
  std::uint32_t owner_ = 0;  // processGeneration()
  std::uint64_t name_ = 0;
};

WakeSocket* ofThread() noexcept {
  static PerThread<WakeSocket> sockets;
  try {
    WakeSocket& mine = sockets.get();
    mine.open();
    return &mine;
  } catch (...) {
    return nullptr;  // no memory: as without a descriptor
  }
}

}  // namespace

int wakeDescriptor() noexcept {
  const WakeSocket* const mine = ofThread();
  return mine == nullptr ? -1 : mine->fd();
}

std::uint64_t wakeName() noexcept {
  const WakeSocket* const mine = ofThread();
  return mine == nullptr ? 0 : mine->name();
}

void forgetWakes() noexcept {
  const int fd = wakeDescriptor();
  constexpr int atOnce = 8;  // mostly there is one, and one call finds that there is no other
  mmsghdr wakes[atOnce]{};
  while (fd >= 0 && ::recvmmsg(fd, wakes, atOnce, MSG_DONTWAIT, nullptr) == atOnce) {
  }
}

void wakeThread(std::uint64_t name) noexcept {
  const int fd = wakeDescriptor();
  if (fd < 0) return;  // the sleeper looks up by itself before long
  try {
    const AbstractAddress address(socketNameOf(name));
    // A full queue is readable all the same; a sleeper that has gone needs nothing.
    (void)::sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.size());
  } catch (...) {
    return;
  }
}

}  // namespace tacc
