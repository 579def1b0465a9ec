// Butterflies: reduce-scatter by halves and allgather by doubling, for any order of partners.
//
//   size = 2^L places; in level l every place exchanges with its partner: it keeps the half of its range of blocks that
//   its side will finish, sends the other half, and adds what comes. After L levels it has one complete block; the
//   allgather undoes the levels in reverse order. What decides the sides: places that can still meet in later levels
//   are one side, so they keep the same half. Ranges are therefore contiguous for every butterfly; which block a place
//   ends with follows from that (blockOf).
//
//   allreduce: any p through a fold (fold.hpp); blocks may end anywhere, so nothing is moved. Steps 2 lg p, with a fold
//   2 floor(lg p) + 2. Bytes per rank 2 (p-1)/p N; with a fold those who act for two send 2 (P-1)/P N + N.
//   reduce-scatter, allgather: powers of two, lg p steps, (p-1) blocks. Rank r must end (begin) with block r: unless
//   blockOf is the identity the blocks are first (last) copied between the buffer and scratch in the butterfly's order.
#pragma once

#include <vector>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

class Butterfly {
 public:
  /// Partner of a place in a level, of 2^L places. Level 0 moves the most data.
  using Partner = int (*)(int place, int level, int size, const std::vector<int>& dimensions);

  struct Level {
    int partner;
    int keep;  // first block of the half that is kept
    int send;  // first block of the half that is given away
    int half;  // blocks of either
  };

  /// `dimensions` must outlive it.
  Butterfly(int size, Partner partner, const std::vector<int>& dimensions);

  int levels() const noexcept { return levels_; }
  Level level(int place, int l) const;
  /// The block that is complete at `place`.
  int blockOf(int place) const { return blocks_[static_cast<std::size_t>(place)]; }
  /// Every place ends with the block of its number.
  bool isInOrder() const;

 private:
  int size_;
  Partner partner_;
  const std::vector<int>& dimensions_;
  int levels_ = 0;
  std::vector<int> blocks_;
};

/// The part of the writer's rank: allreduce for any p; reduce-scatter and allgather for powers of two.
void writeButterfly(const PlanRequest& request, Butterfly::Partner partner, PlanWriter& writer);
Exchanges exchangesOfButterfly(const PlanRequest& request, Butterfly::Partner partner);

}  // namespace tacc
