// Gradient buckets over communicators without other ranks: what is put together, what goes alone, and wrong uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Buckets : public ::testing::Test {
 protected:
  ~Buckets() override {
    taccBucketDestroy(bucket_);
    if (stream_ != nullptr) taccStreamDestroy(stream_);
    taccCommDestroy(comm_);
  }
  void make(std::size_t bytes, bool onStream = false) {
    if (onStream) {
      ASSERT_EQ(taccStreamCreate(&stream_), taccSuccess);
    }
    ASSERT_EQ(taccBucketCreate(&bucket_, comm_, stream_, bytes), taccSuccess) << taccGetLastError(comm_);
  }
  void add(std::size_t at, std::size_t count, taccRedOp_t op = taccSum) {
    ASSERT_EQ(taccBucketAdd(bucket_, &values_[at], count, taccFloat, op), taccSuccess) << taccGetLastError(comm_);
  }
  /// Elements of the calls so far.
  std::vector<std::size_t> calls() {
    std::vector<std::size_t> counts;
    for (const Event& event : world_.events()) counts.push_back(event.call.count);
    return counts;
  }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(0, 2);
  taccStream_t stream_ = nullptr;
  taccBucket_t bucket_ = nullptr;
  std::vector<float> values_ = std::vector<float>(1000, 1.0F);
};

TEST_F(Buckets, AreFullOrFlushedAndThenReduced) {
  make(400);
  add(0, 40);
  add(40, 30);
  EXPECT_TRUE(calls().empty());
  add(70, 31);  // does not fit any more
  EXPECT_THAT(calls(), ElementsAre(70));
  add(200, 69);  // fills the second one
  EXPECT_THAT(calls(), ElementsAre(70, 100));
  add(300, 5);
  add(400, 0);
  EXPECT_EQ(taccBucketFlush(bucket_), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(70, 100, 5));
  EXPECT_EQ(taccBucketFlush(bucket_), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(70, 100, 5)) << "nothing was left";
}

TEST_F(Buckets, LargeTensorsGoAloneWithoutACopyAndCloseNothing) {
  make(400);
  add(0, 10);
  add(100, 100);
  EXPECT_THAT(calls(), ElementsAre(100));
  EXPECT_EQ(world_.events()[0].call.receive, &values_[100]);
  EXPECT_EQ(world_.events()[0].call.root, 0) << "an allreduce like any other";
  add(10, 20);
  EXPECT_EQ(taccBucketDestroy(std::exchange(bucket_, nullptr)), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(100, 30)) << "destroying flushes";
}

TEST_F(Buckets, TypesAndOperationsHaveTheirOwn) {
  make(4000);
  std::vector<double> doubles(3, 1.0);
  add(0, 1);
  add(1, 2, taccMax);
  ASSERT_EQ(taccBucketAdd(bucket_, doubles.data(), 3, taccDouble, taccSum), taccSuccess);
  add(3, 4);
  ASSERT_EQ(taccBucketFlush(bucket_), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(5, 2, 3));
}

TEST_F(Buckets, WhatTouchesTheSameMemoryRunsInTheOrderOfTheCalls) {
  make(4000);
  add(0, 10);
  add(20, 10);
  add(5, 10);
  EXPECT_THAT(calls(), ElementsAre(20));
  ASSERT_EQ(taccBucketFlush(bucket_), taccSuccess);
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_EQ(values_[i], i >= 5 && i < 10 ? 4.0F : i < 15 || i >= 20 ? 2.0F : 1.0F) << i;
}

TEST_F(Buckets, EveryElementIsReducedOnceWhateverTheSizes) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const std::size_t bytes = 4 * (1 + random() % 300);
    make(bytes);
    std::vector<float> values(5000, 1.0F);
    std::size_t end = 0, tensors = 0;
    for (std::size_t count; end + (count = random() % (random() % 4 == 0 ? 400 : 20)) <= values.size(); ++tensors) {
      ASSERT_EQ(taccBucketAdd(bucket_, &values[end], count, taccFloat, taccSum), taccSuccess);
      end += count;
    }
    const std::size_t before = calls().size();
    ASSERT_EQ(taccBucketFlush(bucket_), taccSuccess);
    EXPECT_LE(calls().size(), before + 1);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i < end ? 2.0F : 1.0F) << i << " of " << seed;
    ASSERT_EQ(taccBucketDestroy(std::exchange(bucket_, nullptr)), taccSuccess);
  }
}

TEST_F(Buckets, TheStreamReducesWhileTheProgramGoesOn) {
  make(40, true);
  world_.hold(0);
  add(0, 10);
  ASSERT_TRUE(world_.waitForEvents(1));
  add(10, 10);
  add(20, 3);
  ASSERT_EQ(taccBucketFlush(bucket_), taccSuccess);
  EXPECT_EQ(taccStreamQuery(stream_), taccInProgress);
  world_.letGo(0);
  ASSERT_EQ(taccStreamSynchronize(stream_), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(10, 10, 3));
  for (std::size_t i = 0; i < 23; ++i) EXPECT_EQ(values_[i], 2.0F);
}

TEST_F(Buckets, AnOperatorsFactorTravelsAlong) {
  make(4000);
  float factor = 3;
  taccRedOp_t op;
  ASSERT_EQ(taccRedOpCreatePreMulSum(&op, &factor, taccFloat, taccScalarHostImmediate, comm_), taccSuccess);
  add(0, 10, op);
  add(20, 10, op);
  ASSERT_EQ(taccRedOpDestroy(op, comm_), taccSuccess);
  ASSERT_EQ(taccBucketFlush(bucket_), taccSuccess);
  EXPECT_THAT(calls(), ElementsAre(20));
  EXPECT_EQ(values_[25], 6.0F);
}

TEST_F(Buckets, SizesAreTheProgramsOrChosen) {
  make(12345);
  std::size_t bytes = 0;
  ASSERT_EQ(taccBucketBytes(bucket_, &bytes), taccSuccess);
  EXPECT_EQ(bytes, 12345u);
  ASSERT_EQ(taccBucketDestroy(bucket_), taccSuccess);
  make(0);
  ASSERT_EQ(taccBucketBytes(bucket_, &bytes), taccSuccess);
  EXPECT_EQ(bytes, BucketSizes{}.full);
}

TEST_F(Buckets, WrongUsesAreNamed) {
  EXPECT_EQ(taccBucketCreate(nullptr, comm_, nullptr, 0), taccInvalidArgument);
  EXPECT_EQ(taccBucketCreate(&bucket_, nullptr, nullptr, 0), taccInvalidArgument);
  EXPECT_EQ(taccBucketCreate(&bucket_, comm_, reinterpret_cast<taccStream_t>(&world_), 0), taccInvalidArgument);
  EXPECT_EQ(bucket_, nullptr);
  EXPECT_EQ(taccBucketAdd(nullptr, values_.data(), 1, taccFloat, taccSum), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("bucket is NULL"));
  EXPECT_EQ(taccBucketFlush(reinterpret_cast<taccBucket_t>(&world_)), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("not a bucket"));
  make(400);
  EXPECT_EQ(taccBucketBytes(bucket_, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccBucketAdd(bucket_, nullptr, 1, taccFloat, taccSum), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(comm_), HasSubstr("buffer is NULL"));
  EXPECT_EQ(taccBucketAdd(bucket_, values_.data(), 1, taccNumTypes, taccSum), taccInvalidArgument);
  EXPECT_EQ(taccBucketAdd(bucket_, values_.data(), 1, taccFloat, taccNumOps), taccInvalidArgument);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  EXPECT_EQ(taccBucketAdd(bucket_, values_.data(), 1, taccFloat, taccSum), taccInvalidUsage);
  EXPECT_THAT(taccGetLastError(comm_), HasSubstr("group"));
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  ASSERT_EQ(taccBucketDestroy(bucket_), taccSuccess);
  EXPECT_EQ(taccBucketDestroy(std::exchange(bucket_, nullptr)), taccInvalidArgument);
  EXPECT_EQ(taccBucketDestroy(nullptr), taccSuccess);
  EXPECT_TRUE(calls().empty());
}

TEST_F(Buckets, AfterTheCommunicatorsEndTheyCanOnlyBeDestroyed) {
  make(400);
  add(0, 10);
  ASSERT_EQ(taccCommDestroy(comm_), taccSuccess);
  EXPECT_NE(taccBucketAdd(bucket_, values_.data(), 1, taccFloat, taccSum), taccSuccess);
  EXPECT_EQ(taccBucketDestroy(std::exchange(bucket_, nullptr)), taccSuccess);
  EXPECT_TRUE(calls().empty());
}

}  // namespace
}  // namespace tacc::test
