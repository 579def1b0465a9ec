// How gradients of weights are cut into tiles: all rows once, none larger than a kernel; and where a call sees few
// pixels, equal tiles that share one.
#include "compute/conv/algorithms/weight_tiles.hpp"

#include <gtest/gtest.h>

#include <random>

#include "compute/conv/shape.hpp"

namespace tacc::conv::test {
namespace {

void expectAllOnce(const std::vector<WeightTiles::Part>& parts, int count, int limit) {
  int at = 0;
  for (const WeightTiles::Part& part : parts) {
    EXPECT_EQ(part.from, at);
    EXPECT_GE(part.size(), 1);
    EXPECT_LE(part.size(), limit);
    at = part.to;
  }
  EXPECT_EQ(at, count);
}

TEST(WeightTiles, HaveAllRowsOnceOfAsManyAsKernelsTake) {
  std::mt19937 random(29);
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  for (int i = 0; i < 2000; ++i) {
    const int outs = from(1, 200), ins = from(1, 200), pixels = from(0, 1) == 0 ? from(1, 40) : from(1, 400);
    for (const KernelSet* kernels : availableKernels()) {
      const WeightTiles tiles = chooseHalfTiles(*kernels, outs, ins, pixels, from(0, 1) == 0);
      for (const WeightTiles::Part& blocks : tiles.blockParts) {
        expectAllOnce(tiles.rowParts, std::min(ins, blockLength), kernels->rowLimit[blocks.size()]);
        if (ins % blockLength != 0)
          expectAllOnce(tiles.lastRowParts, ins % blockLength, kernels->rowLimit[blocks.size()]);
      }
      const int halves =
          2 * (tiles.blockParts.empty() ? 0 : tiles.blockParts.back().to) + tiles.halfTiles * tiles.halvesOfTile;
      EXPECT_EQ(ceilDivide(halves, 2), ceilDivide(outs, blockLength));
      EXPECT_GT(tiles.cyclesOfPixel, 0);
    }
  }
}

TEST(WeightTiles, OfProductsOfFewPixelsShareCalls) {
  int sets = 0;
  for (const KernelSet* kernels : availableKernels()) {
    const auto areShared = [&](int pixels, bool isProduct) {
      return areEqual(chooseHalfTiles(*kernels, 2 * blockLength, 60 * blockLength, pixels, isProduct).rowParts);
    };
    // Where vectors are as long as blocks nobody has measured it; and where the largest tiles are equal there is
    // nothing to choose.
    if (kernels->fmaLanes == blockLength || areShared(400, true)) continue;
    ++sets;
    EXPECT_TRUE(areShared(4, true)) << kernels->isa;
    EXPECT_FALSE(areShared(4, false)) << kernels->isa;
  }
  if (sets == 0) GTEST_SKIP() << "no instruction set of this CPU has unequal tiles of half blocks";
}

}  // namespace
}  // namespace tacc::conv::test
