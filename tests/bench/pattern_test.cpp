#include "worker/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Longer than two periods, beginning inside one.
constexpr size_t count = 2 * Pattern::period + 100;
constexpr size_t first = Pattern::period - 10;

TEST(Pattern, reducedIsTheReductionOfWhatTheRanksFill) {
  const int ranks = 5;
  for (int op = 0; op < numOps; ++op) {
    const Pattern pattern(taccFloat64, static_cast<taccRedOp_t>(op), ranks);
    std::vector<double> expected(count), input(count);
    pattern.fill(expected.data(), count, first, 0);
    for (int rank = 1; rank < ranks; ++rank) {
      pattern.fill(input.data(), count, first, rank);
      for (size_t i = 0; i < count; ++i) {
        switch (op) {
          case taccProd:
            expected[i] *= input[i];
            break;
          case taccMax:
            expected[i] = std::max(expected[i], input[i]);
            break;
          case taccMin:
            expected[i] = std::min(expected[i], input[i]);
            break;
          default:
            expected[i] += input[i];
        }
      }
    }
    for (double& value : expected) value = op == taccAvg ? value / ranks : value;
    EXPECT_EQ(pattern.countWrong(expected.data(), count, first, Pattern::reduced), 0) << op;
  }
}

// What rank r has is what all ranks have where there are r + 1 of them, if the inputs do not depend on their number.
TEST(Pattern, prefixesAreReductionsOfFewerRanks) {
  constexpr int ranks = 5;
  for (const taccRedOp_t op : {taccSum, taccMax, taccMin})
    for (int self = 0; self < ranks; ++self) {
      const Pattern pattern(taccFloat64, op, ranks, self), upTo(taccFloat64, op, self + 1, self);
      std::vector<double> values(count);
      upTo.fill(values.data(), count, first, Pattern::reduced);
      EXPECT_EQ(pattern.countWrong(values.data(), count, first, Pattern::upToSelf), 0) << op << self;
      if (self == 0) continue;
      EXPECT_EQ(upTo.countWrong(values.data(), count, first, Pattern::upToSelf), 0) << op << self;
      const Pattern before(taccFloat64, op, self);
      before.fill(values.data(), count, first, Pattern::reduced);
      EXPECT_EQ(pattern.countWrong(values.data(), count, first, Pattern::beforeSelf), 0) << op << self;
    }
}

TEST(Pattern, sumsAreExactInEveryTypeAtManyRanks) {
  for (int i = 0; i < numTypes; ++i) {
    const auto type = static_cast<taccDataType_t>(i);
    if (!isFloating(type)) continue;
    const Pattern pattern(type, taccSum, 255);
    std::vector<char> sum(8 * Pattern::period), wide(8 * Pattern::period);
    pattern.fill(sum.data(), Pattern::period, 0, Pattern::reduced);
    for (size_t at = 0; at < 100; ++at) {
      double exact = 0;
      for (int rank = 0; rank < 255; ++rank) {
        char element[8];
        pattern.fill(element, 1, at, rank);
        exact += loadElement(type, element);
      }
      EXPECT_EQ(loadElement(type, sum.data() + at * elementSize(type)), exact) << typeName(type);
    }
  }
}

TEST(Pattern, everyWrongElementIsCounted) {
  const Pattern pattern(taccInt32, std::nullopt, 3);
  std::vector<int> data(count);
  pattern.fill(data.data(), count, first, 2);
  EXPECT_EQ(pattern.countWrong(data.data(), count, first, 2), 0);
  data[0] += 1;
  data[Pattern::period] += 1;
  data[count - 1] += 1;
  EXPECT_EQ(pattern.countWrong(data.data(), count, first, 2), 3);
}

TEST(Pattern, otherRanksAndOtherPlacesAreSeen) {
  const Pattern pattern(taccFloat32, std::nullopt, 3);
  std::vector<float> data(count);
  pattern.fill(data.data(), count, first, 2);
  EXPECT_GT(pattern.countWrong(data.data(), count, first, 1), static_cast<int64_t>(count * 9 / 10));
  EXPECT_GT(pattern.countWrong(data.data(), count, first + 4096, 2), static_cast<int64_t>(count * 9 / 10));
}

TEST(Pattern, averagesMayBeOffByRoundingOnly) {
  const Pattern pattern(taccFloat32, taccAvg, 3);
  std::vector<float> data(100);
  pattern.fill(data.data(), data.size(), 0, Pattern::reduced);
  for (float& value : data) value *= 1 + 1.2e-7F;
  EXPECT_EQ(pattern.countWrong(data.data(), data.size(), 0, Pattern::reduced), 0);
  for (float& value : data) value = value * 1.001F + 0.001F;
  EXPECT_EQ(pattern.countWrong(data.data(), data.size(), 0, Pattern::reduced), 100);
}

}  // namespace
}  // namespace tacc::bench
