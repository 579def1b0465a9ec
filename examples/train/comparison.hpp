// What all runs came to, over several seeds and parts of the images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer.hpp"

namespace tacc::train {

/// The accuracy of every way to train: for each seed on all images that were tested on in any of its runs.
class Comparison {
 public:
  /// A run has ended with this accuracy on `images` images that it was not trained on.
  void add(const Run& run, std::uint64_t seed, double accuracy, std::size_t images);
  /// A line for each way: its accuracies (%), and for the seed where it is the furthest behind "serial", the points.
  std::string table() const;

 private:
  struct Tested {
    std::uint64_t seed;
    double correct = 0, images = 0;
    double percent() const { return 100 * correct / images; }
  };
  struct Row {
    Run run;
    std::vector<Tested> seeds;
  };
  Row& rowOf(const Run& run);
  std::string behind(const Row& row) const;

  std::vector<Row> rows_;
};

}  // namespace tacc::train
