// By what a rank is known to the others over TCP.
//
// Every rank makes a pair of keys for one communicator (X25519) and tells the public one with its address. A pair of
// ranks has a key that follows from the private key of one, the public key of the other, and the job's secret: a
// stranger cannot know it, nor can another rank of the job.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "transports/keyed_hash.hpp"

namespace tacc {

class TcpCredentials {
 public:
  /// `secret`: the job's.
  TcpCredentials(int rank, std::size_t ranks, const Key& secret);
  ~TcpCredentials();
  TcpCredentials(const TcpCredentials&) = delete;
  TcpCredentials& operator=(const TcpCredentials&) = delete;

  int rank() const noexcept { return rank_; }
  std::size_t ranks() const noexcept { return peers_.size(); }
  const Key& publicKey() const noexcept { return publicKey_; }
  void setPublicKey(int peer, const Key& key) { peers_[static_cast<std::size_t>(peer)].publicKey = key; }

  /// The key that this rank shares with `peer` alone. Takes some 50 us the first time. Nothing for a peer whose public
  /// key is unknown, or none.
  const std::optional<Key>& keyWith(int peer);

 private:
  struct Peer {
    std::optional<Key> publicKey;
    std::optional<Key> shared;
  };
  int rank_;
  Key secret_;
  Key privateKey_;
  Key publicKey_;
  std::vector<Peer> peers_;
};

}  // namespace tacc
