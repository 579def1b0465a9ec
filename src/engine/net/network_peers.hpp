// The message numbers of every pair of ranks, and the header that opens a call between two ranks.
//
// Both ends of a pair count its messages alike, so a number is all that a message needs to be known by. The first
// message of a call from one rank to another is a header with the sender's call in it; a short first payload travels
// inside. So ranks that call different things find out with their first message, at no message more where it matters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/network_transport.hpp"

namespace tacc {

/// As it travels: 12 bytes. The payload is what else the message has.
struct CallHeader {
  std::uint32_t call;  // number of the call on the communicator
  std::uint32_t low, high;

  static CallHeader of(std::uint64_t signature, std::uint32_t call) noexcept {
    return {call, static_cast<std::uint32_t>(signature), static_cast<std::uint32_t>(signature >> 32)};
  }
  std::uint64_t signature() const noexcept { return std::uint64_t{high} << 32 | low; }
  bool operator==(const CallHeader&) const = default;
};

inline constexpr std::size_t inlineBytes = 4096;  // payload that travels with the header; more is not worth copying

/// What is numbered: collectives and point-to-point messages do not meet.
enum class MessageClass : std::uint8_t { collective, pair };

class NetworkPeers {
 public:
  NetworkPeers(NetworkTransport& transport, int ranks)
      : transport_(transport), peers_(static_cast<std::size_t>(ranks)) {}

  NetworkTransport& transport() const noexcept { return transport_; }

  /// Takes `count` consecutive numbers for messages to or from `peer`; returns the first, as a tag.
  std::uint32_t takeSendTags(int peer, std::uint32_t count, MessageClass kind);
  std::uint32_t takeReceiveTags(int peer, std::uint32_t count, MessageClass kind);

  /// Whether the bounce buffer of headers to `peer` is free.
  bool headerIsFree(int peer) { return peers_[static_cast<std::size_t>(peer)].sending.done; }
  /// Sends header and payload (at most inlineBytes; copied). The bounce buffer must be free.
  void sendHeader(int peer, std::uint32_t tag, const CallHeader& header, std::span<const std::byte> payload);
  /// Posts the receive of a header.
  void receiveHeader(int peer, std::uint32_t tag);
  /// The header from `peer` that was posted last, once it is there; else null.
  const CallHeader* arrivedHeader(int peer) const;
  /// The payload that came with it, and its bytes.
  const std::byte* arrivedPayload(int peer) const;
  std::size_t arrivedBytes(int peer) const;
  /// All headers have been sent.
  bool isQuiet() const;

 private:
  struct Header {
    std::uint32_t unused;  // so that the payload lies on a boundary of 16 bytes
    CallHeader header;
    std::array<std::byte, inlineBytes> payload;

    /// Where the message begins.
    std::byte* message() noexcept { return reinterpret_cast<std::byte*>(this) + sizeof unused; }
  };
  static_assert(sizeof(Header) == 16 + inlineBytes);
  struct Peer {
    std::array<std::uint32_t, 2> nextSend{}, nextReceive{};  // by MessageClass
    NetworkRequest sending, receiving;
    std::unique_ptr<Header> out, in;  // made at first use
  };
  NetworkTransport& transport_;
  std::vector<Peer> peers_;
};

}  // namespace tacc
