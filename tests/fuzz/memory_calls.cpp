// The calls of the kernel that targets with memory_sockets.hpp are linked to (meson.build: --wrap). Those that are
// about a descriptor of the kernel's go on to it.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "fuzz/memory_sockets.hpp"
#include "fuzz/target.hpp"

using tacc::fuzz::DescriptorTable;
using tacc::fuzz::MemorySocket;

namespace {

/// As std::chrono::steady_clock::now() returns it: a whole number of nanoseconds, in a register.
using SteadyTime = std::int64_t;

/// So far apart are two looks at the clock: who waits by looking at it comes to an end.
constexpr std::chrono::nanoseconds tick(200);
constexpr std::chrono::hours beginning(1000);

std::chrono::nanoseconds& now() noexcept {
  static std::chrono::nanoseconds only = beginning;
  return only;
}

std::function<void()>& whileWaiting() {
  static auto* const only = new std::function<void()>;
  return *only;
}

/// As the kernel's calls return it.
template <class Result>
Result answer(Result result) noexcept {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

MemorySocket* at(int fd) noexcept { return DescriptorTable::get().at(fd); }

int add(MemorySocket::Kind kind) { return DescriptorTable::get().add(std::make_shared<MemorySocket>(kind)); }

/// The bytes of an address as far as they tell it from others; a port of 0, or no name, is chosen here.
std::string nameIn(const sockaddr* address, socklen_t bytes, bool chooses) {
  static std::uint16_t lastPort = 10000;
  std::string name(reinterpret_cast<const char*>(address), bytes);
  if (address->sa_family == AF_UNIX) {
    if (chooses && bytes == sizeof(sa_family_t)) name += fmt::format("{}{:05x}", '\0', ++lastPort);
    return name;
  }
  sockaddr_in parts{};  // the port is where that of IPv6 is
  std::memcpy(&parts, address, sizeof parts);
  if (chooses && parts.sin_port == 0) parts.sin_port = htons(++lastPort);
  std::memcpy(name.data(), &parts, sizeof parts);
  return name;
}

int look(pollfd* sockets, nfds_t count) noexcept {
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    sockets[i].revents = 0;
    if (sockets[i].fd < 0) continue;
    const MemorySocket* const socket = DescriptorTable::isOurs(sockets[i].fd) ? at(sockets[i].fd) : nullptr;
    sockets[i].revents = socket == nullptr ? short{POLLNVAL} : socket->events(sockets[i].events);
    ready += sockets[i].revents != 0 ? 1 : 0;
  }
  return ready;
}

/// The same in every run, so that what an input does can be seen again.
void fillRandomly(void* buffer, std::size_t bytes) noexcept {
  static std::minstd_rand random;
  auto* const begin = static_cast<unsigned char*>(buffer);
  std::generate_n(begin, bytes, [] { return static_cast<unsigned char>(random() >> 8); });
}

}  // namespace

void tacc::fuzz::setWhileWaiting(std::function<void()> work) { whileWaiting() = std::move(work); }

extern "C" {

int __real_close(int);
int __real_fcntl(int, int, ...);
int __real_fcntl64(int, int, ...);
ssize_t __real_read(int, void*, std::size_t);
ssize_t __real_write(int, const void*, std::size_t);

SteadyTime __wrap__ZNSt6chrono3_V212steady_clock3nowEv() { return (now() += tick).count(); }

int __wrap_socket(int, int type, int) {
  return add((type & 0xf) == SOCK_DGRAM ? MemorySocket::Kind::datagram : MemorySocket::Kind::stream);
}

int __wrap_socketpair(int, int, int, int* ends) {
  for (int i = 0; i < 2; ++i) ends[i] = add(MemorySocket::Kind::stream);
  MemorySocket::connect(DescriptorTable::get().find(ends[0]), DescriptorTable::get().find(ends[1]));
  return 0;
}

int __wrap_eventfd(unsigned, int) { return add(MemorySocket::Kind::event); }

int __wrap_bind(int fd, const sockaddr* address, socklen_t bytes) {
  return answer(at(fd)->bind(nameIn(address, bytes, true)));
}

int __wrap_listen(int fd, int) { return answer(at(fd)->listen()); }

int __wrap_connect(int fd, const sockaddr* address, socklen_t bytes) {
  return answer(at(fd)->call(nameIn(address, bytes, false)));
}

int __wrap_accept4(int fd, sockaddr* address, socklen_t* bytes, int) {
  if (address != nullptr) {
    std::memset(address, 0, *bytes);
    address->sa_family = AF_UNIX;
    *bytes = sizeof(sa_family_t);
  }
  MemorySocket::Shared first = at(fd)->accept();
  return first ? DescriptorTable::get().add(std::move(first)) : answer(-EAGAIN);
}

int __wrap_getsockname(int fd, sockaddr* address, socklen_t* bytes) {
  const std::string& name = at(fd)->name();
  std::memset(address, 0, *bytes);
  std::memcpy(address, name.data(), std::min<std::size_t>(name.size(), *bytes));
  *bytes = static_cast<socklen_t>(name.size());
  return 0;
}

int __wrap_getpeername(int, sockaddr*, socklen_t*) { return answer(-ENOTCONN); }

int __wrap_setsockopt(int, int, int, const void*, socklen_t) { return 0; }

int __wrap_getsockopt(int, int level, int option, void* value, socklen_t* bytes) {
  std::memset(value, 0, *bytes);
  if (level != SOL_SOCKET || option != SO_PEERCRED) return 0;
  const ucred self{::getpid(), ::geteuid(), ::getegid()};
  std::memcpy(value, &self, std::min<std::size_t>(sizeof self, *bytes));
  return 0;
}

int __wrap_shutdown(int fd, int) {
  at(fd)->shutdown();
  return 0;
}

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int) {
  MemorySocket* const socket = at(fd);
  return answer(socket == nullptr ? ssize_t{-EBADF} : socket->send(*message));
}

ssize_t __wrap_send(int fd, const void* data, std::size_t bytes, int flags) {
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return __wrap_sendmsg(fd, &message, flags);
}

ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  MemorySocket* const socket = at(fd);
  return answer(socket == nullptr ? ssize_t{-EBADF} : socket->receive(*message, flags));
}

ssize_t __wrap_recv(int fd, void* data, std::size_t bytes, int flags) {
  iovec part{data, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return __wrap_recvmsg(fd, &message, flags);
}

int __wrap_poll(pollfd* sockets, nfds_t count, int milliseconds) {
  int ready = look(sockets, count);
  if (ready > 0 || milliseconds == 0) return ready;
  if (whileWaiting()) {
    whileWaiting()();
    ready = look(sockets, count);
  }
  if (ready == 0) now() += std::chrono::milliseconds(milliseconds < 0 ? 1 : milliseconds);
  return ready;
}

int __wrap_close(int fd) {
  if (!DescriptorTable::isOurs(fd)) return __real_close(fd);
  return DescriptorTable::get().close(fd) ? 0 : answer(-EBADF);
}

int __wrap_fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const auto argument = va_arg(arguments, long);
  va_end(arguments);
  if (!DescriptorTable::isOurs(fd)) return __real_fcntl64(fd, command, argument);
  MemorySocket::Shared socket = DescriptorTable::get().find(fd);
  if (!socket) return answer(-EBADF);
  return command == F_DUPFD_CLOEXEC ? DescriptorTable::get().add(std::move(socket)) : 0;
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const auto argument = va_arg(arguments, long);
  va_end(arguments);
  return __wrap_fcntl64(fd, command, argument);
}

ssize_t __wrap_read(int fd, void* data, std::size_t bytes) {
  if (!DescriptorTable::isOurs(fd)) return __real_read(fd, data, bytes);
  return answer(at(fd)->silence());
}

ssize_t __wrap_write(int fd, const void* data, std::size_t bytes) {
  if (!DescriptorTable::isOurs(fd)) return __real_write(fd, data, bytes);
  return answer(at(fd)->ring());
}

ssize_t __wrap_getrandom(void* buffer, std::size_t bytes, unsigned) {
  fillRandomly(buffer, bytes);
  return static_cast<ssize_t>(bytes);
}

/// /proc/thread-self/ns/pid is what is asked for.
ssize_t __wrap_readlink(const char*, char* buffer, std::size_t bytes) {
  constexpr std::string_view target = "pid:[4026531836]";
  return static_cast<ssize_t>(target.copy(buffer, bytes));
}

void __wrap_randombytes_buf(void* buffer, std::size_t bytes) { fillRandomly(buffer, bytes); }

}  // extern "C"
