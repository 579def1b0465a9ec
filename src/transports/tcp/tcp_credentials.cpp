#include "transports/tcp/tcp_credentials.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdint>

#include "core/error.hpp"

namespace tacc {

static_assert(sizeof(Key) == crypto_box_PUBLICKEYBYTES && sizeof(Key) == crypto_box_SECRETKEYBYTES);

TcpCredentials::TcpCredentials(int rank, std::size_t ranks, const Key& secret)
    : rank_(rank), secret_(secret), peers_(ranks) {
  if (::sodium_init() < 0) fail(taccSystemError, "rank {}: libsodium finds no source of random numbers", rank);
  ::crypto_box_keypair(publicKey_.data(), privateKey_.data());
}

TcpCredentials::~TcpCredentials() {
  ::sodium_memzero(secret_.data(), secret_.size());
  ::sodium_memzero(privateKey_.data(), privateKey_.size());
  for (Peer& peer : peers_)
    if (peer.shared) ::sodium_memzero(peer.shared->data(), peer.shared->size());
}

const std::optional<Key>& TcpCredentials::keyWith(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.shared || !peer.publicKey) return peer.shared;
  Key common;
  if (::crypto_scalarmult(common.data(), privateKey_.data(), peer.publicKey->data()) != 0) return peer.shared;
  const bool isLower = rank_ < rank;
  const auto ranks =
      std::array{static_cast<std::uint32_t>(std::min(rank_, rank)), static_cast<std::uint32_t>(std::max(rank_, rank))};
  peer.shared = keyedHash(secret_, "tacc: pair's key",
                          {bytesOf(common), bytesOf(ranks), bytesOf(isLower ? publicKey_ : *peer.publicKey),
                           bytesOf(isLower ? *peer.publicKey : publicKey_)});
  ::sodium_memzero(common.data(), common.size());
  return peer.shared;
}

}  // namespace tacc
