// What two ranks tell each other before messages flow over a TCP connection between them.
//
//   who accepted  -> who connected   TcpChallenge: a fresh nonce
//   who connected -> who accepted    TcpHello: who it is, whom it wants, a fresh nonce, and a proof of all that
//   who accepted  -> who connected   TcpAnswer: whether it takes the connection, and another proof
//
// Proofs are hashes under the key that the two ranks share (tcp_credentials.hpp). Fresh nonces of both ends make a
// recorded conversation worthless; the ranks and the purposes in the hashes keep what one end said from being sent back
// to it, or to a third one. From the same follow the keys of an encrypted connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transports/inet_address.hpp"
#include "transports/keyed_hash.hpp"

namespace tacc {

/// What a rank tells the others over the bootstrap, whose connections have proven the job's secret.
struct TcpAddress {
  std::uint16_t port;
  Key publicKey;
  std::vector<InetAddress::V6> hosts;  // best first
};

std::vector<std::byte> packTcpAddress(const TcpAddress& address);
/// Nothing when the bytes are no address.
std::optional<TcpAddress> unpackTcpAddress(const std::vector<std::byte>& bytes);

inline constexpr std::array<char, 8> tcpMagic = {'t', 'a', 'c', 'c', 't', 'c', 'p', '2'};

struct TcpChallenge {
  std::array<char, 8> magic = tcpMagic;
  Nonce nonce{};
};

struct TcpHello {
  std::array<char, 8> magic = tcpMagic;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Nonce nonce{};
  Proof proof{};
};

enum class TcpVerdict : std::uint32_t {
  taken = 1,
  refused,  // the rank that answers connects, or has
};

struct TcpAnswer {
  TcpVerdict verdict{};
  Proof proof{};
};

/// The hello of rank `from` to rank `to`, which share `key`.
TcpHello greetBack(const Key& key, const TcpChallenge& challenge, int from, int to);
/// Whether who says hello is who it claims to be. The caller has looked up `key` for the rank in it.
bool isGenuine(const Key& key, const TcpChallenge& challenge, const TcpHello& hello) noexcept;

TcpAnswer answerHello(const Key& key, const TcpChallenge& challenge, const TcpHello& hello,
                      TcpVerdict verdict) noexcept;
bool isGenuine(const Key& key, const TcpChallenge& challenge, const TcpHello& hello, const TcpAnswer& answer) noexcept;

/// For the end that connected, or the other.
LinkKeys linkKeys(const Key& key, const TcpChallenge& challenge, const TcpHello& hello, bool hasConnected) noexcept;

}  // namespace tacc
