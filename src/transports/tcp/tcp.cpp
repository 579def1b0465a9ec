#include "transports/tcp/tcp.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <list>
#include <mutex>
#include <utility>

#include "core/environment.hpp"
#include "core/undying.hpp"
#include "transports/file_identity.hpp"
#include "transports/inet_address.hpp"

namespace tacc {
namespace {

constexpr std::size_t reservedPorts = 64;
/// The other end is asked after a quarter of the time, and then in such intervals until the time is over.
constexpr int probes = 15;
constexpr double forEver = 7200;
constexpr double longestSilence = 5 * 24 * 3600;
constexpr int longestInterval = 32767;  // that the kernel takes
/// Behind an operation's time-out, so that the inquest that it begins has the first word.
constexpr double afterTimeout = 5;
/// A single one may be chance.
constexpr int retransmissionsInVain = 2;
/// Milliseconds: the kernel tells the age of a confirmation in ticks of its clock.
constexpr double tick = 20;

void share(int socket) noexcept {
  setOption(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  setOption(socket, SOL_SOCKET, SO_REUSEPORT, 1);
}

/// `isAlone`: nobody else may have the port yet, of this user either; others may share it later.
FileDescriptor bindFamily(int family, const InetAddress& address, bool isAlone) noexcept {
  FileDescriptor socket =
      ownDescriptor([&] { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!socket.valid()) return socket;
  if (!isAlone) share(socket.get());
  if (family == AF_INET6) setOption(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  sockaddr_storage storage;
  const socklen_t bytes = address.fill(storage);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) == 0) {
    if (isAlone) share(socket.get());
    return socket;
  }
  const int code = errno;
  socket.reset();
  errno = code;
  return socket;
}

/// A port that this process keeps, or one from which it was forked.
class Reservation {
 public:
  Reservation(std::uint16_t port, FileDescriptor socket) noexcept
      : port_(port), socket_(std::move(socket)), file_(identify(socket_.get())) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  /// A child that becomes a daemon closes all descriptors, and may have another file at the number, such as a
  /// connection that was accepted at the port.
  ~Reservation() { giveUpReplaced(socket_, file_); }
  std::uint16_t port() const noexcept { return port_; }

 private:
  std::uint16_t port_;
  FileDescriptor socket_;
  FileId file_;
};

struct Reservations {
  ForkMutex mutex;
  std::list<Reservation> held;  // oldest first
};

FileDescriptor bindAt(std::uint16_t port, const std::optional<InetAddress>& only, bool isAlone) noexcept {
  if (only) {
    return only->isV4() ? bindFamily(AF_INET, InetAddress(only->v4(), port), isAlone)
                        : bindFamily(AF_INET6, InetAddress(only->v6(), port), isAlone);
  }
  FileDescriptor both = bindFamily(AF_INET6, InetAddress(InetAddress::V6{}, port), isAlone);
  if (both.valid() || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)) return both;
  return bindFamily(AF_INET, InetAddress(InetAddress::V4{}, port), isAlone);
}

/// TACC_PORT_RANGE. That it is right has been seen before anything is bound.
std::optional<PortRange> allowedPorts() noexcept {
  const char* text = std::getenv("TACC_PORT_RANGE");
  return text == nullptr ? std::nullopt : parsePortRange(text);
}

/// The ports stay reserved until the process has ended.
Reservations& reservations() {
  static Undying<Reservations> only;
  return only.get();
}

}  // namespace

FileDescriptor bindTcp(std::uint16_t port, const std::optional<InetAddress>& only) noexcept {
  if (port != 0) return bindAt(port, only, false);
  const std::optional<PortRange> range = allowedPorts();
  if (!range) return bindAt(0, only, false);
  // Each begins elsewhere, so that ranks that start together seldom ask for what another has just taken.
  unsigned begin = 0;
  (void)!::getrandom(&begin, sizeof begin, GRND_NONBLOCK);
  for (unsigned i = 0; i < range->count(); ++i) {
    const auto chosen = static_cast<std::uint16_t>(range->first + (begin + i) % range->count());
    FileDescriptor socket = bindAt(chosen, only, true);
    if (socket.valid() || (errno != EADDRINUSE && errno != EACCES)) return socket;
  }
  errno = EADDRINUSE;
  return {};
}

std::string describeNoPort(int code) {
  if (code != EADDRINUSE || !allowedPorts()) return "";
  return fmt::format(" (no port of TACC_PORT_RANGE={} is free; each rank needs some of its own)",
                     std::getenv("TACC_PORT_RANGE"));
}

std::uint16_t portOf(int fd) noexcept {
  const auto address = InetAddress::ofSocket(fd);
  return address ? address->port() : std::uint16_t{0};
}

std::uint16_t reservePort() {
  FileDescriptor socket = bindTcp(0);
  if (!socket.valid()) return 0;
  const std::uint16_t port = portOf(socket.get());
  shareWithChildren(socket.get());  // one of them may be rank 0
  Reservations& all = reservations();
  const std::lock_guard guard(all.mutex);
  all.held.emplace_back(port, std::move(socket));
  if (all.held.size() > reservedPorts) all.held.pop_front();
  return port;
}

void releasePort(std::uint16_t port) noexcept {
  Reservations& all = reservations();
  const std::lock_guard guard(all.mutex);
  std::erase_if(all.held, [port](const Reservation& one) { return one.port() == port; });
}

void setOption(int fd, int level, int option, int value) noexcept {
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

double silenceFor(double operationTimeout) noexcept {
  if (operationTimeout <= 0) return forEver;
  return std::clamp(operationTimeout + afterTimeout, leastSilence, longestSilence);
}

void tuneTcpForData(int fd, double silence) noexcept {
  const int seconds = static_cast<int>(silence);
  const int interval = std::max({1, seconds / 4 * 3 / probes, (seconds - longestInterval) / probes + 1});
  setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds - interval * probes));
  setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, probes);
}

void tuneTcp(int fd, double silence) noexcept {
  tuneTcpForData(fd, silence);
  // Counts as well while the other end answers and its window is closed.
  setOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence * 1000));
}

bool isSentInVain(int fd) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && info.tcpi_retransmits >= retransmissionsInVain;
}

bool isUnconfirmed(int fd, double seconds) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  int queued = 0;  // bytes: sent and not confirmed, or not even sent, as where there is no route
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_last_ack_recv > seconds * 1000 + tick && ::ioctl(fd, TIOCOUTQ, &queued) == 0 && queued > 0;
}

}  // namespace tacc
