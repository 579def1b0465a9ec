// What the tests of layers share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "../conv/conv_case.hpp"
#include "../conv/threaded_executor.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::layers::test {

using conv::test::Floats;
using conv::test::ThreadedExecutor;

/// Sizes of a tensor in taccLayoutNchw16c, and where its numbers are.
struct Sizes {
  int batch, channels, height, width;
  std::size_t floats() const { return conv::tensorFloats(taccLayoutNchw16c, batch, channels, height, width); }
  std::ptrdiff_t at(int n, int c, int p) const {
    return conv::elementAt(taccLayoutNchw16c, channels, height, width, n, c, p / width, p % width);
  }
  int pixels() const { return height * width; }
};

/// A number in [-1, 1].
inline float fraction(std::uint64_t seed, std::uint64_t i) { return conv::test::smallInteger(seed, i, 99991) / 99991; }

/// `middle` + numbers in [-1, 1], with zeros in the channels that only fill a block.
inline Floats someTensor(const Sizes& sizes, std::uint64_t seed, float middle = 0) {
  Floats tensor(sizes.floats());
  std::uint64_t i = 0;
  for (int n = 0; n < sizes.batch; ++n) {
    for (int c = 0; c < sizes.channels; ++c) {
      for (int p = 0; p < sizes.pixels(); ++p) tensor[sizes.at(n, c, p)] = middle + fraction(seed, i++);
    }
  }
  return tensor;
}

/// The channels that only fill a block hold zeros.
inline void expectZeroPadding(const Sizes& sizes, const Floats& tensor) {
  const int stored = conv::roundUp(sizes.channels, conv::blockLength);
  for (int n = 0; n < sizes.batch; ++n) {
    for (int c = sizes.channels; c < stored; ++c) {
      for (int p = 0; p < sizes.pixels(); ++p) {
        ASSERT_EQ(tensor[conv::elementAt(taccLayoutNchw16c, stored, sizes.height, sizes.width, n, c, p / sizes.width,
                                         p % sizes.width)],
                  0.0F);
      }
    }
  }
}

/// The kernels of every instruction set that this CPU has.
inline std::vector<const LayerKernels*> availableTables() {
  std::vector<const LayerKernels*> tables;
  for (const conv::KernelSet* set : conv::availableKernels()) {
    tables.push_back(&kernelTable(set->vectors));
    EXPECT_EQ(tables.back()->isa, set->vectors);
  }
  return tables;
}

}  // namespace tacc::layers::test
