#include "transports/inet_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tacc {
namespace {

constexpr std::array<unsigned char, 12> mappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::optional<InetAddress> ask(int fd, int (*question)(int, sockaddr*, socklen_t*)) noexcept {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (question(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return std::nullopt;
  return InetAddress::of(reinterpret_cast<const sockaddr*>(&storage));
}

}  // namespace

InetAddress::InetAddress(const V4& bytes, std::uint16_t port) noexcept : port_(port) {
  std::ranges::copy(mappedPrefix, bytes_.begin());
  std::ranges::copy(bytes, bytes_.begin() + mappedPrefix.size());
}

InetAddress::InetAddress(const V6& bytes, std::uint16_t port) noexcept : bytes_(bytes), port_(port) {}

std::optional<InetAddress> InetAddress::of(const sockaddr* address) noexcept {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    V4 bytes;
    std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
    return InetAddress(bytes, ntohs(in.sin_port));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    V6 bytes;
    std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
    return InetAddress(bytes, ntohs(in.sin6_port));
  }
  return std::nullopt;
}

std::optional<InetAddress> InetAddress::parse(const std::string& host) noexcept {
  V4 four;
  if (::inet_pton(AF_INET, host.c_str(), four.data()) == 1) return InetAddress(four);
  V6 six;
  if (::inet_pton(AF_INET6, host.c_str(), six.data()) == 1) return InetAddress(six);
  return std::nullopt;
}

std::optional<InetAddress> InetAddress::ofSocket(int fd) noexcept { return ask(fd, ::getsockname); }
std::optional<InetAddress> InetAddress::ofPeer(int fd) noexcept { return ask(fd, ::getpeername); }

bool InetAddress::isV4() const noexcept { return std::equal(mappedPrefix.begin(), mappedPrefix.end(), bytes_.begin()); }

bool InetAddress::isLoopback() const noexcept {
  constexpr V6 loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return isV4() ? v4()[0] == 127 : bytes_ == loopback;
}

bool InetAddress::isLinkLocal() const noexcept {
  if (isV4()) return v4()[0] == 169 && v4()[1] == 254;
  return bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

InetAddress::V4 InetAddress::v4() const noexcept {
  V4 bytes;
  std::copy(bytes_.begin() + mappedPrefix.size(), bytes_.end(), bytes.begin());
  return bytes;
}

socklen_t InetAddress::fill(sockaddr_storage& storage) const noexcept {
  storage = {};
  if (isV4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port_);
    std::memcpy(&in.sin_addr, bytes_.data() + mappedPrefix.size(), sizeof in.sin_addr);
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port_);
  std::memcpy(&in.sin6_addr, bytes_.data(), bytes_.size());
  std::memcpy(&storage, &in, sizeof in);
  return sizeof in;
}

std::string InetAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const V4 short4 = v4();
  const void* bytes = isV4() ? static_cast<const void*>(short4.data()) : bytes_.data();
  return ::inet_ntop(isV4() ? AF_INET : AF_INET6, bytes, text.data(), text.size()) != nullptr ? text.data() : "?";
}

std::string InetAddress::text() const {
  return isV4() ? fmt::format("{}:{}", host(), port_) : fmt::format("[{}]:{}", host(), port_);
}

}  // namespace tacc
