#include "transports/tcp/tcp_greeting.hpp"

#include <algorithm>
#include <cstring>

namespace tacc {

std::vector<std::byte> packTcpAddress(const TcpAddress& address) {
  std::vector<std::byte> bytes(sizeof address.port + sizeof address.publicKey +
                               address.hosts.size() * sizeof(InetAddress::V6));
  std::byte* to = bytes.data();
  const auto add = [&to](std::span<const std::byte> part) { to = std::ranges::copy(part, to).out; };
  add(bytesOf(address.port));
  add(bytesOf(address.publicKey));
  for (const InetAddress::V6& host : address.hosts) add(bytesOf(host));
  return bytes;
}

std::optional<TcpAddress> unpackTcpAddress(const std::vector<std::byte>& bytes) {
  TcpAddress address{};
  constexpr std::size_t front = sizeof address.port + sizeof address.publicKey;
  constexpr std::size_t hostBytes = sizeof(InetAddress::V6);
  if (bytes.size() < front || (bytes.size() - front) % hostBytes != 0) return std::nullopt;
  std::memcpy(&address.port, bytes.data(), sizeof address.port);
  std::memcpy(address.publicKey.data(), bytes.data() + sizeof address.port, sizeof address.publicKey);
  for (std::size_t at = front; at < bytes.size(); at += hostBytes)
    std::memcpy(address.hosts.emplace_back().data(), bytes.data() + at, hostBytes);
  return address;
}

namespace {

Proof proveHello(const Key& key, const TcpChallenge& challenge, const TcpHello& hello) noexcept {
  return keyedHash(key, "tacc tcp: hello ",
                   {bytesOf(challenge.nonce), bytesOf(hello.nonce), bytesOf(hello.from), bytesOf(hello.to)});
}

Proof proveAnswer(const Key& key, const TcpChallenge& challenge, const TcpHello& hello, TcpVerdict verdict) noexcept {
  return keyedHash(
      key, "tacc tcp: answer",
      {bytesOf(challenge.nonce), bytesOf(hello.nonce), bytesOf(hello.from), bytesOf(hello.to), bytesOf(verdict)});
}

}  // namespace

TcpHello greetBack(const Key& key, const TcpChallenge& challenge, int from, int to) {
  TcpHello hello;
  hello.from = static_cast<std::uint32_t>(from);
  hello.to = static_cast<std::uint32_t>(to);
  hello.nonce = makeNonce();
  hello.proof = proveHello(key, challenge, hello);
  return hello;
}

bool isGenuine(const Key& key, const TcpChallenge& challenge, const TcpHello& hello) noexcept {
  return areEqual(hello.proof, proveHello(key, challenge, hello));
}

TcpAnswer answerHello(const Key& key, const TcpChallenge& challenge, const TcpHello& hello,
                      TcpVerdict verdict) noexcept {
  return {verdict, proveAnswer(key, challenge, hello, verdict)};
}

bool isGenuine(const Key& key, const TcpChallenge& challenge, const TcpHello& hello, const TcpAnswer& answer) noexcept {
  return areEqual(answer.proof, proveAnswer(key, challenge, hello, answer.verdict));
}

LinkKeys linkKeys(const Key& key, const TcpChallenge& challenge, const TcpHello& hello, bool hasConnected) noexcept {
  const auto parts = {bytesOf(challenge.nonce), bytesOf(hello.nonce), bytesOf(hello.from), bytesOf(hello.to)};
  const Key there = keyedHash(key, "tacc tcp: there ", parts), back = keyedHash(key, "tacc tcp: back  ", parts);
  return hasConnected ? LinkKeys{there, back} : LinkKeys{back, there};
}

}  // namespace tacc
