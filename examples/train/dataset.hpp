// Labelled images: from a file, and in two parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace tacc::train {

/// Square images of one channel.
struct Dataset {
  int side = 0;
  int classes = 0;
  std::vector<float> pixels;  // side * side for each image, line by line; 0 is the ground, 1 the full ink
  std::vector<int> labels;    // 0 to classes - 1

  std::size_t size() const { return labels.size(); }
  std::size_t pixelsEach() const { return static_cast<std::size_t>(side) * static_cast<std::size_t>(side); }
  const float* image(std::size_t index) const { return pixels.data() + index * pixelsEach(); }
  void add(const float* image, int label);
};

/// Sides that the models take: they halve the image twice.
inline constexpr int leastSide = 8, mostSide = 64;
bool isSide(int side);

/// Reads what export_digits.py writes: a line that says what follows, then one for each image with its label and its
/// pixels, whole numbers from 0 to `largest`:
///   images 1797 side 8 classes 10 largest 16
///   0  0 0 5 13 9 1 0 0 ...
/// `name` is that of the file. Errors name file and line.
Dataset readDataset(std::istream& in, const std::string& name);
Dataset readDatasetFile(const std::string& path);

struct Split {
  Dataset train;
  Dataset test;
};

/// Parts of a data set, of which one is for tests.
inline constexpr int foldCount = 5;

/// A fifth of the images, drawn by the seed, to test with; the others, in a drawn order, to train on. Folds 0 to 4 of
/// one seed test with different images, together with all.
Split splitDataset(const Dataset& all, std::uint64_t seed, int fold = 0);

}  // namespace tacc::train
