#include "transports/pair_marks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tacc {

PairMarks::PairMarks(int rank, int ranks, const Key& secret, int bits)
    : rank_(rank),
      bits_(bits),
      rankBits_(static_cast<int>(std::bit_width(static_cast<unsigned>(ranks)))),
      secret_(secret),
      nonce_(makeNonce()),
      sending_(static_cast<std::size_t>(ranks)),
      receiving_(static_cast<std::size_t>(ranks)) {
  for (int peer = 0; peer < ranks; ++peer) receiving_[static_cast<std::size_t>(peer)] = fieldOf(peer, rank, nonce_);
}

void PairMarks::setNonce(int peer, const Nonce& nonce) noexcept {
  sending_[static_cast<std::size_t>(peer)] = fieldOf(rank_, peer, nonce);
}

std::uint64_t PairMarks::fieldOf(int sender, int receiver, const Nonce& nonce) const noexcept {
  const Proof hash = keyedHash(secret_, "tacc: tag's mark", {bytesOf(nonce), bytesOf(sender), bytesOf(receiver)});
  std::uint64_t mark;
  std::memcpy(&mark, hash.data(), sizeof mark);
  const int markBits = std::max(0, bits_ - rankBits_);
  mark &= (std::uint64_t{1} << markBits) - 1;
  return mark << rankBits_ | static_cast<std::uint64_t>(static_cast<std::uint32_t>(sender));
}

}  // namespace tacc
