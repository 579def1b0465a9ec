// An address of the internet protocols, version 4 or 6, with a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace tacc {

class InetAddress {
 public:
  using V4 = std::array<unsigned char, 4>;
  using V6 = std::array<unsigned char, 16>;

  explicit InetAddress(const V4& bytes, std::uint16_t port = 0) noexcept;
  /// One that maps a version 4 address (::ffff:a.b.c.d) is that address.
  explicit InetAddress(const V6& bytes, std::uint16_t port = 0) noexcept;
  /// Nothing for an address of another family.
  static std::optional<InetAddress> of(const sockaddr* address) noexcept;
  /// "192.0.2.2" or "fd00::2"; nothing for any other text.
  static std::optional<InetAddress> parse(const std::string& host) noexcept;
  /// The address at this end of a socket, or at its other end.
  static std::optional<InetAddress> ofSocket(int fd) noexcept;
  static std::optional<InetAddress> ofPeer(int fd) noexcept;

  bool isV4() const noexcept;
  bool isLoopback() const noexcept;
  /// Means something on one link only (169.254.*, fe80::).
  bool isLinkLocal() const noexcept;
  V4 v4() const noexcept;
  const V6& v6() const noexcept { return bytes_; }
  std::uint16_t port() const noexcept { return port_; }
  bool sameHost(const InetAddress& other) const noexcept { return bytes_ == other.bytes_; }
  bool operator==(const InetAddress&) const = default;

  /// For the socket calls; returns the length.
  socklen_t fill(sockaddr_storage& storage) const noexcept;
  /// "192.0.2.2" or "fd00::2".
  std::string host() const;
  /// "192.0.2.2:4711" or "[fd00::2]:4711".
  std::string text() const;

 private:
  V6 bytes_{};
  std::uint16_t port_;
};

}  // namespace tacc
