#include "support/cluster_shape.hpp"

#include <gtest/gtest.h>

namespace tacc::tools {
namespace {

TEST(ClusterShape, isReadAndWritten) {
  const ClusterShape shape = ClusterShape::parse("2,4,200,100");
  EXPECT_EQ(shape.text(), "2,4,200,100");
  EXPECT_EQ(shape.totalHosts(), 8);
  const std::vector<ClusterShape::Link> links = {{"tacc5", 200}, {"leaf2", 100}};
  EXPECT_EQ(shape.hosts()[4], (ClusterShape::Host{"tacc5", links}));
}

TEST(ClusterShape, rejectsWhatIsNone) {
  for (const char* text : {"", "2", "2,4,200", "2,4,200,100,", "2,4,200,100x", "0,4,200,100", "2,0,200,100",
                           "2,4,-1,100", "a,b,c,d", "/no/such.toml"})
    EXPECT_THROW(ClusterShape::parse(text), std::invalid_argument) << text;
}

TEST(CallsPerBurst, sendMoreThanTheLinksLetPassAtOnce) {
  const ClusterShape shape = ClusterShape::parse("2,4,200,200");
  constexpr size_t burst = 64 << 10;
  for (size_t bytes = 8 << 10; bytes <= 4 * burst; bytes *= 2)
    EXPECT_GE(callsPerBurst(shape, bytes) * bytes, 4 * burst);
  EXPECT_EQ(callsPerBurst(shape, 64 << 20), 0);  // what passes at once is a small part of these
}

TEST(CallsPerBurst, areAsManyForFewBytes) {
  const ClusterShape shape = ClusterShape::parse("2,4,200,200");
  EXPECT_EQ(callsPerBurst(shape, 0), callsPerBurst(shape, 8 << 10));
  EXPECT_EQ(callsPerBurst(shape, 8), callsPerBurst(shape, 8 << 10));
}

TEST(CallsPerBurst, growWithTheRate) {
  EXPECT_GT(callsPerBurst(ClusterShape::parse("1,4,10000,0"), 1 << 20),
            callsPerBurst(ClusterShape::parse("1,4,200,0"), 1 << 20));
  EXPECT_EQ(callsPerBurst(ClusterShape::parse("1,4,0,0"), 8), 0);
}

}  // namespace
}  // namespace tacc::tools
