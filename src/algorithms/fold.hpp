// Reduces any number of ranks to a power of two for algorithms that exchange in pairs.
//
//   p = size + rest with size the largest power of two <= p. Of the first 2 rest ranks the even ones hand their vector
//   to the odd neighbour above, sit out, and get the result back at the end. The `size` ranks that take part are
//   numbered 0 .. size-1 in rank order (v). For p = 6: size 4, rest 2:
//     rank    0       1    2       3    4    5
//     v     (to 1)    0  (to 3)    1    2    3
#pragma once

#include "algorithms/exchanges.hpp"

namespace tacc {

class Fold {
 public:
  explicit Fold(int p) noexcept {
    while (2 * size_ <= p) size_ *= 2;
    rest_ = p - size_;
  }
  int size() const noexcept { return size_; }
  bool needed() const noexcept { return rest_ > 0; }
  /// The rank hands its vector to rank + 1 and sits out.
  bool sitsOut(int rank) const noexcept { return rank < 2 * rest_ && rank % 2 == 0; }
  /// The rank takes part for rank - 1 too.
  bool actsForTwo(int rank) const noexcept { return rank < 2 * rest_ && rank % 2 == 1; }
  /// v of a rank that takes part, and back.
  int virtualOf(int rank) const noexcept { return rank < 2 * rest_ ? rank / 2 : rank - rest_; }
  int rankOf(int v) const noexcept { return v < rest_ ? 2 * v + 1 : v + rest_; }

  /// Ranks that sit out hand over their vector of `blocks` blocks; at the end they get the result.
  Exchange before(int blocks) const {
    Exchange exchange;
    exchange.to = [*this](int r) { return sitsOut(r) ? r + 1 : r; };
    exchange.blocks = blocks;
    exchange.combines = true;
    return exchange;
  }
  Exchange after(int blocks) const {
    Exchange exchange;
    exchange.to = [*this](int r) { return actsForTwo(r) ? r - 1 : r; };
    exchange.blocks = blocks;
    return exchange;
  }

 private:
  int size_ = 1;
  int rest_ = 0;
};

}  // namespace tacc
