#include "coordinator/stolen_time.hpp"

#include <gtest/gtest.h>

namespace tacc::bench {
namespace {

TEST(StolenTime, IsTheEighthFieldOfAllProcessors) {
  const ProcessorTime time = parseProcessorTime("cpu  100 1 50 800 9 2 3 35 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  EXPECT_EQ(time.all, 1000U);  // the guest's 7 are among the user's 100
  EXPECT_EQ(time.stolen, 35U);
}

TEST(StolenTime, OldKernelsDoNotTell) {
  EXPECT_EQ(parseProcessorTime("cpu 100 1 50 800\n").stolen, 0U);
  EXPECT_EQ(parseProcessorTime("cpu 100 1 50 800\n").all, 951U);
}

TEST(StolenTime, OtherTextHasNone) {
  for (const char* text : {"", "cpu", "cpu0 1 2 3 4 5 6 7 8\n", "cpu one two\n", "intr 1 2 3\n"}) {
    EXPECT_EQ(parseProcessorTime(text).all, 0U) << text;
    EXPECT_EQ(parseProcessorTime(text).stolen, 0U) << text;
  }
}

TEST(StolenTime, ShareIsAShare) {
  const StolenTime stolen;
  EXPECT_GE(stolen.share(), 0);
  EXPECT_LE(stolen.share(), 1);
}

}  // namespace
}  // namespace tacc::bench
