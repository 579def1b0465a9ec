#include "transports/tcp_greeting.hpp"

#include <sodium.h>

#include <cstring>

namespace tacc {

TcpKey makeTcpKey() {
  TcpKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

std::vector<std::byte> packTcpAddress(const TcpAddress& address) {
  std::vector<std::byte> bytes;
  const auto add = [&bytes](const void* data, std::size_t count) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + count);
  };
  add(&address.port, sizeof address.port);
  add(address.key.data(), address.key.size());
  for (const InetAddress::V6& host : address.hosts) add(host.data(), host.size());
  return bytes;
}

std::optional<TcpAddress> unpackTcpAddress(const std::vector<std::byte>& bytes) {
  TcpAddress address{};
  constexpr std::size_t front = sizeof address.port + sizeof address.key;
  constexpr std::size_t hostBytes = sizeof(InetAddress::V6);
  if (bytes.size() < front || (bytes.size() - front) % hostBytes != 0) return std::nullopt;
  std::memcpy(&address.port, bytes.data(), sizeof address.port);
  std::memcpy(address.key.data(), bytes.data() + sizeof address.port, sizeof address.key);
  for (std::size_t at = front; at < bytes.size(); at += hostBytes)
    std::memcpy(address.hosts.emplace_back().data(), bytes.data() + at, hostBytes);
  return address;
}

bool isGenuine(const TcpHello& hello, const TcpKey& key, int rank, std::size_t ranks) noexcept {
  return hello.magic == TcpHello().magic && hello.to == static_cast<std::uint32_t>(rank) && hello.from < ranks &&
         hello.from != hello.to && sodium_memcmp(hello.key.data(), key.data(), key.size()) == 0;
}

}  // namespace tacc
