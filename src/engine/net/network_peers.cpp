#include "engine/net/network_peers.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t classBit = 1U << 31;

std::uint32_t takeTags(std::array<std::uint32_t, 2>& next, std::uint32_t count, MessageClass kind) {
  std::uint32_t& counter = next[static_cast<std::size_t>(kind)];
  // All numbers of a call lie in one run: it must not wrap inside it. Both ends see the same counter and count.
  if (counter + count >= classBit) counter = 0;
  const std::uint32_t first = counter;
  counter += count;
  return kind == MessageClass::pair ? first | classBit : first;
}

}  // namespace

std::uint32_t NetworkPeers::takeSendTags(int peer, std::uint32_t count, MessageClass kind) {
  return takeTags(peers_[static_cast<std::size_t>(peer)].nextSend, count, kind);
}

std::uint32_t NetworkPeers::takeReceiveTags(int peer, std::uint32_t count, MessageClass kind) {
  return takeTags(peers_[static_cast<std::size_t>(peer)].nextReceive, count, kind);
}

void NetworkPeers::sendHeader(int peer, std::uint32_t tag, const CallHeader& header,
                              std::span<const std::byte> payload) {
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (!p.out) p.out = std::make_unique<Header>();
  p.out->header = header;
  std::ranges::copy(payload, p.out->payload.begin());
  transport_.send(peer, tag, p.out->message(), sizeof(CallHeader) + payload.size(), p.sending);
}

void NetworkPeers::receiveHeader(int peer, std::uint32_t tag) {
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (!p.in) p.in = std::make_unique<Header>();
  transport_.receive(peer, tag, p.in->message(), sizeof(CallHeader) + inlineBytes, p.receiving);
}

const CallHeader* NetworkPeers::arrivedHeader(int peer) const {
  const Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (!p.receiving.done) return nullptr;
  if (p.receiving.bytes < sizeof(CallHeader))
    fail(taccInternalError, "rank {} began a call with a message of {} bytes, less than its header of {}", peer,
         p.receiving.bytes, sizeof(CallHeader));
  return &p.in->header;
}

const std::byte* NetworkPeers::arrivedPayload(int peer) const {
  return peers_[static_cast<std::size_t>(peer)].in->payload.data();
}

std::size_t NetworkPeers::arrivedBytes(int peer) const {
  return peers_[static_cast<std::size_t>(peer)].receiving.bytes - sizeof(CallHeader);
}

bool NetworkPeers::isQuiet() const {
  return std::ranges::all_of(peers_, [](const Peer& p) { return p.sending.done; });
}

}  // namespace tacc
