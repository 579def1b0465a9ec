// Which images a training learns, and which it is tested on.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset.hpp"
#include "options.hpp"

namespace tacc::train {

/// Every way to train runs once on each.
struct Trial {
  std::uint64_t seed;  // of shapes, of the split, of the first weights and of the order of images
  int fold;            // which part is for tests
  Split data;
};

/// For each seed one with each of the first `options.folds` parts to test with. Never empty.
std::vector<Trial> loadTrials(const Options& options);

}  // namespace tacc::train
