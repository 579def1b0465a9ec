#include "trial.hpp"

#include "shapes.hpp"

namespace tacc::train {

std::vector<Trial> loadTrials(const Options& options) {
  const bool isFile = !options.data.empty();
  Dataset all;
  if (isFile) all = readDatasetFile(options.data);
  std::vector<Trial> trials;
  for (const std::uint64_t seed : options.seeds) {
    if (!isFile) all = drawShapes(options.images, options.side, seed);
    for (int fold = 0; fold < options.folds; ++fold) trials.push_back({seed, fold, splitDataset(all, seed, fold)});
  }
  return trials;
}

}  // namespace tacc::train
