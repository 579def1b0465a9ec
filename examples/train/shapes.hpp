// Images for where there is no file: shapes drawn at random.
#pragma once

#include <cstdint>

#include "dataset.hpp"

namespace tacc::train {

/// `images` of 10 classes (square, diamond, triangle, cross, saltire, ring, disc, bars, pillars, zigzag), each as often
/// as the others, somewhere in the image, of any size, a little turned, with noise. The same for the same seed.
Dataset drawShapes(int images, int side, std::uint64_t seed);

}  // namespace tacc::train
