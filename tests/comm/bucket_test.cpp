// Gradient buckets among ranks that are processes or threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "rank_harness.hpp"
#include "tacc/tacc.h"

namespace tacc::test {
namespace {

using testing::HasSubstr;

class BucketRanks : public testing::TestWithParam<RankKind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, BucketRanks, testing::Values(RankKind::processes, RankKind::threads),
                         [](const auto& suite) { return suite.param == RankKind::threads ? "threads" : "processes"; });

TEST_P(BucketRanks, SumsAreExactWhateverTheSizes) {
  runRanks(GetParam(), 3, [](taccComm_t comm, int rank) {
    taccStream_t stream;
    expectSuccess(taccStreamCreate(&stream), comm);
    std::mt19937 random(7);  // alike on all ranks
    for (int step = 0; step < 20; ++step) {
      taccBucket_t bucket;
      expectSuccess(taccBucketCreate(&bucket, comm, stream, step % 2 == 0 ? 0 : 64 + random() % 100000), comm);
      std::vector<std::vector<std::int32_t>> tensors;
      for (int t = 0; t < 40; ++t) tensors.emplace_back(random() % (random() % 8 == 0 ? 60000 : 500));
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        for (std::size_t i = 0; i < tensors[t].size(); ++i)
          tensors[t][i] = static_cast<std::int32_t>(i * 3 + t) * (rank + 1);
        expectSuccess(taccBucketAdd(bucket, tensors[t].data(), tensors[t].size(), taccInt32, taccSum), comm);
      }
      expectSuccess(taccBucketFlush(bucket), comm);
      expectSuccess(taccStreamSynchronize(stream), comm);
      for (std::size_t t = 0; t < tensors.size(); ++t)
        for (std::size_t i = 0; i < tensors[t].size(); ++i)
          ASSERT_EQ(tensors[t][i], static_cast<std::int32_t>(i * 3 + t) * 6) << "tensor " << t << ", element " << i;
      expectSuccess(taccBucketDestroy(bucket), comm);
    }
    expectSuccess(taccStreamDestroy(stream), comm);
  });
}

TEST_P(BucketRanks, AnotherOrderIsAnErrorThatSaysSo) {
  runRanks(GetParam(), 2, [](taccComm_t comm, int rank) {
    taccBucket_t bucket;
    expectSuccess(taccBucketCreate(&bucket, comm, nullptr, 4096), comm);
    std::vector<float> one(10), other(20);
    std::vector<float>& first = rank == 0 ? one : other;
    std::vector<float>& second = rank == 0 ? other : one;
    expectSuccess(taccBucketAdd(bucket, first.data(), first.size(), taccFloat, taccSum), comm);
    expectSuccess(taccBucketAdd(bucket, second.data(), second.size(), taccFloat, taccSum), comm);
    EXPECT_EQ(taccBucketFlush(bucket), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("allreduce(count 30, float, sum, several together"));
    expectSuccess(taccBucketDestroy(bucket), comm);
  });
}

}  // namespace
}  // namespace tacc::test
