// TCP sockets as tacc uses them: never blocking, closed on exec, and quick to notice a host that has gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"

namespace tacc {

/// A socket bound to `port` (0: one that is free, of TACC_PORT_RANGE if that is set) of all addresses of this host, of
/// both versions where the kernel has them. Several processes of one user may bind the same port, and a connection goes
/// to the one that listens. Owns nothing when that fails: errno says why. `only`: the one address at which it is to be
/// reached, instead of all.
FileDescriptor bindTcp(std::uint16_t port, const std::optional<InetAddress>& only = std::nullopt) noexcept;

/// What to do where bindTcp(0) failed with errno's `code` because no port is free: " (no port of TACC_PORT_RANGE=... is
/// free; ...)"; "" for other codes and without that variable.
std::string describeNoPort(int code);

/// The port that a bound socket has; 0 if it cannot be asked.
std::uint16_t portOf(int fd) noexcept;

/// A port for a new unique id: no other program gets it as long as this process or a fork of it lives, while one that
/// is rank 0 may still listen there. 0 where the host has no TCP. Only the last 64 are held, so that a program that
/// makes ids for ever does not run out of descriptors. Any thread.
std::uint16_t reservePort();

/// Ends the reservation of a port by this process, if there is one: who was to listen there has done so.
void releasePort(std::uint16_t port) noexcept;

/// As setsockopt(). Says nothing where the kernel lacks the option: messages move without it.
void setOption(int fd, int level, int option, int value) noexcept;

/// How long a connection's other end may be silent, its host gone or cut off, until the kernel calls the connection
/// dead: as long as an operation may wait for another rank, so that a shorter break is no failure, but at least
/// `leastSilence`; for an operation that may wait for ever, two hours; at most five days. In seconds, all.
double silenceFor(double operationTimeout) noexcept;
inline constexpr double leastSilence = 20;

/// For a connection: messages leave at once, and an other end that is silent for so long is found dead.
void tuneTcp(int fd, double silence = leastSilence) noexcept;

/// The same for a connection whose other end may live and not read for a long time. While data are under way to a host
/// that has gone, the kernel decides how long it tries (net.ipv4.tcp_retries2, 15 minutes or more).
void tuneTcpForData(int fd, double silence = leastSilence) noexcept;

/// The kernel has sent the same bytes more than once after a time-out each, and the other end's has confirmed nothing
/// since: its host or the network loses them. An end that only does not read has confirmed that it gets them.
bool isSentInVain(int fd) noexcept;

/// The other end's kernel has not confirmed all that was sent, and nothing at all came from it in the last `seconds`.
/// Whether a program there reads makes no difference. False for a socket that is not TCP.
bool isUnconfirmed(int fd, double seconds) noexcept;

}  // namespace tacc
