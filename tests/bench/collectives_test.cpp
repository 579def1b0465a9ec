#include "worker/collectives.hpp"

#include <gtest/gtest.h>

#include "worker/pattern.hpp"

namespace tacc::bench {
namespace {

TEST(Collectives, areFoundUnderTheNamesOfOtherBenches) {
  EXPECT_STREQ(findCollective("all_reduce")->name, "allreduce");
  EXPECT_STREQ(findCollective("ReduceScatter")->name, "reducescatter");
  EXPECT_STREQ(findCollective("all-gather")->name, "allgather");
  EXPECT_EQ(findCollective("dance"), nullptr);
  EXPECT_EQ(findCollective(""), nullptr);
}

TEST(Collectives, haveTheBusFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(findCollective("allreduce")->busFactor(4), 1.5);
  EXPECT_DOUBLE_EQ(findCollective("allgather")->busFactor(4), 0.75);
  EXPECT_DOUBLE_EQ(findCollective("broadcast")->busFactor(4), 1.0);
}

TEST(Collectives, roundPartsDownToSixteenBytes) {
  const Collective& allGather = *findCollective("allgather");
  EXPECT_EQ(allGather.shapeOfTotal(100, 4, 3).count, 32U);
  EXPECT_EQ(allGather.shapeOfTotal(100, 4, 3).largest(), 96U);
  // Below 16 bytes a part is what it is, and at least one element.
  EXPECT_EQ(allGather.shapeOfTotal(7, 4, 3).count, 2U);
  EXPECT_EQ(allGather.shapeOfTotal(2, 4, 3).count, 1U);
  EXPECT_EQ(allGather.shapeOfTotal(0, 4, 3).count, 0U);
  EXPECT_EQ(findCollective("allreduce")->shapeOfTotal(7, 4, 3).count, 7U);
}

TEST(Collectives, coverTheReceiveBufferWithoutOverlap) {
  for (const Collective& collective : allCollectives()) {
    if (collective.isUnequal) continue;  // whose buffers are of the longest block
    const Shape shape = collective.shape(5, 3);
    std::vector<int> covered(shape.recvCount, 0);
    for (const Segment& segment : collective.expected(shape, 1, 3, 1))
      for (size_t i = 0; i < segment.count; ++i) ++covered.at(segment.begin + i);
    EXPECT_EQ(covered, std::vector<int>(shape.recvCount, 1)) << collective.name;
  }
}

TEST(Collectives, drawUnequalBlocksThatFitEachOther) {
  for (const int ranks : {1, 2, 5, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const DrawnBlocks blocks = drawnBlocks(100, rank, ranks);
      size_t all = 0;
      for (int other = 0; other < ranks; ++other) {
        const auto at = static_cast<size_t>(other);
        EXPECT_EQ(blocks.places[at], all);
        EXPECT_EQ(blocks.counts[at], drawnBlocks(100, other, ranks).counts[static_cast<size_t>(rank)]);
        all += blocks.counts[at];
      }
      EXPECT_EQ(all, 100U * static_cast<size_t>(ranks));
    }
  }
  EXPECT_NE(drawnBlocks(100, 0, 2).counts[0], 100U);
  const Collective& gather = *findCollective("all_gather_v");
  const auto segments = gather.expected(gather.shape(100, 3), 1, 3, 0);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[1].begin, segments[0].count);
}

TEST(Collectives, expectNothingWhereOnlyTheRootReceives) {
  for (const char* name : {"reduce", "gather", "exscan"}) {
    const Collective& collective = *findCollective(name);
    EXPECT_TRUE(collective.expected(collective.shape(5, 3), 0, 3, 1).empty()) << name;
  }
}

TEST(Collectives, allToAllTransposes) {
  const Collective& allToAll = *findCollective("alltoall");
  const auto segments = allToAll.expected(allToAll.shape(5, 3), 2, 3, 0);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[1].source, 1);
  EXPECT_EQ(segments[1].begin, 5U);
  EXPECT_EQ(segments[1].index, 10U);
}

TEST(Collectives, placeThePartsOfInPlaceCallsAsTheInterfaceSays) {
  const Collective& allGather = *findCollective("allgather");
  EXPECT_EQ(allGather.inPlace(allGather.shape(5, 3), 2).send, 10U);
  EXPECT_EQ(allGather.inPlace(allGather.shape(5, 3), 2).recv, 0U);
  const Collective& reduceScatter = *findCollective("reducescatter");
  EXPECT_EQ(reduceScatter.inPlace(reduceScatter.shape(5, 3), 2).send, 0U);
  EXPECT_EQ(reduceScatter.inPlace(reduceScatter.shape(5, 3), 2).recv, 10U);
}

}  // namespace
}  // namespace tacc::bench
