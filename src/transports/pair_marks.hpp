// A mark in the tag of every message between two ranks, for libraries that match messages by tags and do not ask who a
// sender is.
//
// The upper field of a tag has the sender's rank and, in the bits above it, the mark: a hash under the job's secret of
// both ranks and of a nonce that the receiver has made for this communicator. Who does not know the secret, nor has
// seen the pair's messages, has to guess it, or its messages match no receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/keyed_hash.hpp"

namespace tacc {

class PairMarks {
 public:
  /// `bits`: of the upper field; as many as the ranks take, at least.
  PairMarks(int rank, int ranks, const Key& secret, int bits);

  /// This rank's, for the others.
  const Nonce& nonce() const noexcept { return nonce_; }
  void setNonce(int peer, const Nonce& nonce) noexcept;

  /// The upper field of what this rank sends to `peer`, or receives from it.
  std::uint64_t sending(int peer) const noexcept { return sending_[static_cast<std::size_t>(peer)]; }
  std::uint64_t receiving(int peer) const noexcept { return receiving_[static_cast<std::size_t>(peer)]; }

 private:
  std::uint64_t fieldOf(int sender, int receiver, const Nonce& nonce) const noexcept;

  int rank_;
  int bits_;
  int rankBits_;
  Key secret_;
  Nonce nonce_;
  std::vector<std::uint64_t> sending_, receiving_;
};

}  // namespace tacc
