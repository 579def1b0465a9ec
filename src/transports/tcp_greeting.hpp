// What ranks tell each other before messages flow over TCP: in the address of a rank is a key, and who connects shows
// that it knows the key. The address travels over the bootstrap, whose connections have proven the job's secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transports/inet_address.hpp"

namespace tacc {

using TcpKey = std::array<unsigned char, 16>;

TcpKey makeTcpKey();

struct TcpAddress {
  std::uint16_t port;
  TcpKey key;
  std::vector<InetAddress::V6> hosts;  // best first
};

std::vector<std::byte> packTcpAddress(const TcpAddress& address);
/// Nothing when the bytes are no address.
std::optional<TcpAddress> unpackTcpAddress(const std::vector<std::byte>& bytes);

/// The first bytes of a connection, from the rank that made it.
struct TcpHello {
  std::array<char, 8> magic = {'t', 'a', 'c', 'c', 't', 'c', 'p', '1'};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  TcpKey key{};  // of the rank that is greeted
};

/// Whether a greeting is for `rank` of `ranks`, which has `key`.
bool isGenuine(const TcpHello& hello, const TcpKey& key, int rank, std::size_t ranks) noexcept;

/// The answer, of one byte, to a greeting from a higher rank.
inline constexpr char tcpTaken = 'y';
inline constexpr char tcpRefused = 'n';  // the rank that answers connects, or has

}  // namespace tacc
