// A rank's own part of the images, in batches.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset.hpp"

namespace tacc::train {

struct Batch {
  std::vector<float> pixels;
  std::vector<int> labels;
};

/// Rank r of p has the images r, r + p, r + 2p ...; every rank as many, so that all make the same number of steps.
class Shard {
 public:
  /// `data` is kept as a reference.
  Shard(const Dataset& data, int rank, int ranks, int batch, std::uint64_t seed);

  /// Batches of an epoch. What is too little for a whole batch waits for another epoch's order.
  int steps() const { return static_cast<int>(order_.size() / static_cast<std::size_t>(batch_)); }
  /// Orders the images anew; which order follows from the seed, the rank and the epoch.
  void beginEpoch(int epoch);
  /// Batch `step` of the epoch.
  void take(int step, Batch& batch) const;

 private:
  const Dataset& data_;
  int rank_, ranks_, batch_;
  std::uint64_t seed_;
  std::vector<std::size_t> order_;
};

}  // namespace tacc::train
