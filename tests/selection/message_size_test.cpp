#include "selection/message_size.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace tacc::test {
namespace {

constexpr std::size_t kiB = 1024, miB = 1024 * kiB;

double linkOf(double mbit) { return mbit * 1e6 / 8; }

TEST(MessageBytes, FollowTheLink) {
  EXPECT_EQ(messageBytes(linkOf(10), 0), 4 * kiB);
  EXPECT_EQ(messageBytes(linkOf(200), 0), 16 * kiB);
  EXPECT_EQ(messageBytes(linkOf(1'000), 0), 64 * kiB);
  EXPECT_EQ(messageBytes(linkOf(100'000), 0), 256 * kiB);
}

TEST(MessageBytes, GrowWithTheCall) {
  EXPECT_EQ(messageBytes(linkOf(200), 8 * miB), 16 * kiB);
  EXPECT_EQ(messageBytes(linkOf(200), 16 * miB), 32 * kiB);
  EXPECT_EQ(messageBytes(linkOf(200), 64 * miB), 64 * kiB);
  EXPECT_EQ(messageBytes(linkOf(200), std::size_t{1} << 40), 256 * kiB);
  EXPECT_EQ(messageBytes(linkOf(1'000), 16 * miB), messageBytes(linkOf(1'000), 0));
}

TEST(MessageBytes, ArePowersOfTwoThatNeverShrinkWithTheCall) {
  for (const double mbit : {0.0, 3.0, 200.0, 1'700.0, 400'000.0})
    for (std::size_t bytes = 1, last = 0; bytes < std::size_t{1} << 40; bytes *= 3) {
      const std::size_t message = messageBytes(linkOf(mbit), bytes);
      EXPECT_TRUE(std::has_single_bit(message)) << message;
      EXPECT_GE(message, last);
      EXPECT_GE(message, 4 * kiB);
      EXPECT_LE(message, 256 * kiB);
      last = message;
    }
}

TEST(BytesOfAll, CountsTheBlocksOfAStack) {
  EXPECT_EQ(bytesOfAll({Collective::allReduce, 8, 0}, 100), 100U);
  EXPECT_EQ(bytesOfAll({Collective::allGather, 8, 0}, 100), 800U);
}

}  // namespace
}  // namespace tacc::test
