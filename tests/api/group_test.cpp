// Groups: what is fused, what runs together, in which order, and that an error in a group runs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "api/fusion.hpp"
#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::HasSubstr;

class Groups : public ::testing::Test {
 protected:
  ~Groups() override {
    taccCommDestroy(comm_);
    taccCommDestroy(other_);
  }
  taccResult_t reduce(std::size_t at, std::size_t count, taccComm_t comm, taccStream_t stream = nullptr,
                      taccRedOp_t op = taccSum) {
    return taccAllReduce(&in_[at], &out_[at], count, taccFloat, op, comm, stream);
  }
  std::vector<std::string> log(int rank) {
    std::vector<std::string> log;
    for (const Event& event : world_.events()) {
      if (event.rank != rank) continue;
      const std::size_t size = event.what == "exchange" ? event.operations.size() : event.call.count;
      log.push_back(event.what + " " + std::to_string(size));
    }
    return log;
  }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(0, 2);
  taccComm_t other_ = world_.make(1, 2);
  std::vector<float> in_ = [] {
    std::vector<float> values(100000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return values;
  }();
  std::vector<float> out_ = std::vector<float>(100000, -1.0F);
};

using Log = std::vector<std::string>;

TEST_F(Groups, NothingRunsBeforeTheOutermostEnd) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccBarrier(comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_TRUE(world_.events().empty());
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 0"}));
  EXPECT_EQ(taccGroupEnd(), taccInvalidUsage);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("no group is open"));
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccSuccess);
}

TEST_F(Groups, SmallAllReducesAreOneAndTheirResultsAreApart) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(10, 3, comm_), taccSuccess);
  ASSERT_EQ(taccAllReduce(nullptr, nullptr, 0, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  ASSERT_EQ(reduce(100, 1, comm_), taccSuccess);
  ASSERT_EQ(taccAllReduce(&out_[5], &out_[5], 2, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 6"}));
  for (const std::size_t i : {10, 11, 12, 100}) EXPECT_EQ(out_[i], 2.0F * in_[i]);
  EXPECT_EQ(out_[5], -2.0F);
  EXPECT_EQ(out_[6], -2.0F);
  EXPECT_EQ(out_[7], -1.0F);
  EXPECT_EQ(out_[13], -1.0F);
  EXPECT_EQ(out_[101], -1.0F);
}

TEST_F(Groups, OnlyAllReducesThatFitAreFused) {
  std::vector<double> doubles(4);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_), taccSuccess);
  ASSERT_EQ(reduce(1, 1, comm_, nullptr, taccMax), taccSuccess);  // another operation
  ASSERT_EQ(taccAllReduce(doubles.data(), doubles.data(), 2, taccDouble, taccMax, comm_, nullptr), taccSuccess);
  ASSERT_EQ(reduce(2, 1, comm_), taccSuccess);
  ASSERT_EQ(taccBcast(&out_[50], 7, taccFloat, 0, comm_, nullptr), taccSuccess);  // another collective
  ASSERT_EQ(reduce(3, 1, comm_), taccSuccess);
  ASSERT_EQ(reduce(5000, fusionPartBytes / 4 + 1, comm_), taccSuccess);  // too large
  ASSERT_EQ(reduce(4, 1, comm_), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 1", "run 1", "run 2", "run 1", "run 7", "run 1", "run 2049", "run 1"}));
}

TEST_F(Groups, FusionStopsAtItsLimits) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (std::size_t i = 0; i < 9; ++i) ASSERT_EQ(reduce(i * 2048, 2048, comm_), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 16384", "run 2048"}));
  for (std::size_t i = 0; i < 9 * 2048; ++i) ASSERT_EQ(out_[i], 2.0F * in_[i]);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (std::size_t i = 0; i < fusionParts + 1; ++i) ASSERT_EQ(reduce(i, 1, comm_), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 16384", "run 2048", "run 256", "run 1"}));
}

TEST_F(Groups, CallsThatDependOnEachOtherKeepTheirOrder) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccAllReduce(&in_[1], &out_[0], 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccAllReduce(&out_[2], &out_[10], 4, taccFloat, taccSum, comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 4", "run 4"}));
  EXPECT_EQ(out_[10], 4.0F * in_[3]);
}

TEST_F(Groups, OperatorsFuseWithTheirOwnOnly) {
  float factor = 3.0F;
  taccRedOp_t first;
  taccRedOp_t second;
  ASSERT_EQ(taccRedOpCreatePreMulSum(&first, &factor, taccFloat, taccScalarHostImmediate, comm_), taccSuccess);
  ASSERT_EQ(taccRedOpCreatePreMulSum(&second, &factor, taccFloat, taccScalarHostImmediate, comm_), taccSuccess);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(1, 1, comm_, nullptr, first), taccSuccess);
  ASSERT_EQ(reduce(2, 1, comm_, nullptr, first), taccSuccess);
  ASSERT_EQ(reduce(3, 1, comm_, nullptr, second), taccSuccess);
  ASSERT_EQ(reduce(4, 1, comm_), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 2", "run 1", "run 1"}));
  EXPECT_EQ(out_[2], 12.0F);
  EXPECT_EQ(out_[3], 18.0F);
  EXPECT_EQ(out_[4], 8.0F);
}

TEST_F(Groups, SendsAndReceivesRunTogetherAfterTheCollectives) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccSend(&in_[0], 1, taccFloat, 1, comm_, nullptr), taccSuccess);
  ASSERT_EQ(reduce(0, 5, comm_), taccSuccess);
  ASSERT_EQ(taccRecv(&out_[20], 2, taccFloat, 1, comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccSend(&in_[3], 3, taccFloat, 0, comm_, nullptr), taccSuccess);  // to itself
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 5", "exchange 3"}));
  const std::vector<PointToPoint> operations = world_.events().back().operations;
  EXPECT_TRUE(operations[0].isSend);
  EXPECT_EQ(operations[0].buffer, &in_[0]);
  EXPECT_FALSE(operations[1].isSend);
  EXPECT_EQ(operations[1].peer, 1);
  EXPECT_EQ(operations[1].count, 2u);
  EXPECT_EQ(operations[2].peer, 0);
}

TEST_F(Groups, SingleSendsAndReceivesOutsideAGroup) {
  ASSERT_EQ(taccSend(&in_[0], 4, taccInt32, 1, comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccRecv(&out_[0], 4, taccInt32, 1, comm_, nullptr), taccSuccess);
  EXPECT_EQ(log(0), (Log{"exchange 1", "exchange 1"}));
  EXPECT_EQ(world_.events()[0].operations[0].type, taccInt32);
}

TEST_F(Groups, CommunicatorsOfOneThreadRunAtTheSameTime) {
  world_.meet(2);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (taccComm_t comm : {comm_, other_}) {
    ASSERT_EQ(taccBcast(&out_[0], 1, taccFloat, 0, comm, nullptr), taccSuccess);
    ASSERT_EQ(taccSend(&in_[0], 1, taccFloat, 0, comm, nullptr), taccSuccess);
  }
  ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(nullptr);
  EXPECT_EQ(log(0), (Log{"run 1", "exchange 1"}));
  EXPECT_EQ(log(1), (Log{"run 1", "exchange 1"}));
  for (const Event& event : world_.events()) {
    EXPECT_EQ(event.thread == std::this_thread::get_id(), event.rank == 0);
  }
}

TEST_F(Groups, CommunicatorsOnOneStreamRunAtTheSameTimeToo) {
  taccStream_t stream = nullptr;
  ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  world_.meet(2);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_, stream), taccSuccess);
  ASSERT_EQ(reduce(1, 1, comm_, stream), taccSuccess);
  ASSERT_EQ(reduce(2, 2, other_, stream), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  ASSERT_EQ(taccStreamSynchronize(stream), taccSuccess) << taccGetLastError(nullptr);
  EXPECT_EQ(log(0), (Log{"run 2"}));
  EXPECT_EQ(log(1), (Log{"run 2"}));
  EXPECT_EQ(out_[3], 6.0F);
  for (const Event& event : world_.events()) EXPECT_NE(event.thread, std::this_thread::get_id());
  EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
}

TEST_F(Groups, OrderIsKeptAcrossStreamsAndCommunicators) {
  taccStream_t streams[2] = {};
  for (taccStream_t& stream : streams) ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(taccGroupStart(), taccSuccess);
    // Each stream has an early call of one communicator and a late one of the other.
    for (const int i : {0, 1}) {
      ASSERT_EQ(taccBcast(&out_[0], 1, taccFloat, 0, i == 0 ? comm_ : other_, streams[i]), taccSuccess);
      ASSERT_EQ(taccBcast(&out_[0], 2, taccFloat, 0, i == 0 ? comm_ : other_, nullptr), taccSuccess);
      ASSERT_EQ(taccBcast(&out_[0], 3, taccFloat, 0, i == 0 ? comm_ : other_, streams[1 - i]), taccSuccess);
    }
    ASSERT_EQ(taccGroupEnd(), taccSuccess);
  }
  for (taccStream_t stream : streams) EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
  for (const int rank : {0, 1}) {
    const Log all = log(rank);
    ASSERT_EQ(all.size(), 150u);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], "run " + std::to_string(i % 3 + 1));
  }
}

/// Each rank chooses its streams by itself: they must not change what is fused, and what is sent together.
TEST_F(Groups, WhatRunsAsOneDoesNotDependOnStreams) {
  taccStream_t streams[2] = {};
  for (taccStream_t& stream : streams) ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  for (const bool isOwn : {false, true}) {
    const taccStream_t second = isOwn ? nullptr : streams[1];
    ASSERT_EQ(taccGroupStart(), taccSuccess);
    ASSERT_EQ(taccSend(&in_[0], 1, taccFloat, 1, comm_, streams[0]), taccSuccess);
    ASSERT_EQ(reduce(3, 1, comm_, streams[0]), taccSuccess);
    ASSERT_EQ(taccRecv(&out_[50], 1, taccFloat, 1, comm_, second), taccSuccess);
    ASSERT_EQ(reduce(4, 1, comm_, second), taccSuccess);
    ASSERT_EQ(reduce(5, 1, comm_, streams[0]), taccSuccess);
    world_.hold(0);
    std::thread release([&] {
      EXPECT_TRUE(world_.waitForEvents(isOwn ? 3 : 1));
      EXPECT_EQ(taccStreamQuery(streams[0]), taccInProgress);
      if (!isOwn) {
        EXPECT_EQ(taccStreamQuery(streams[1]), taccInProgress);
      }
      world_.letGo(0);
    });
    EXPECT_EQ(taccGroupEnd(), taccSuccess);
    if (!isOwn) {
      EXPECT_EQ(taccStreamSynchronize(second), taccSuccess);
    }
    // Of the stream that waited for the other only: all is there.
    EXPECT_EQ(out_[3], 6.0F);
    EXPECT_EQ(log(0).back(), "exchange 2");
    release.join();
    EXPECT_EQ(taccStreamSynchronize(streams[0]), taccSuccess);
  }
  EXPECT_EQ(log(0), (Log{"run 3", "exchange 2", "run 3", "exchange 2"}));
  for (taccStream_t stream : streams) EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
}

TEST_F(Groups, AnErrorIsThatOfAllStreamsWhoseCallsRanAsOne) {
  taccStream_t streams[2] = {};
  for (taccStream_t& stream : streams) ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  world_.breakRank(0, taccRemoteError, "rank 7 died");
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (const std::size_t i : {0, 1}) ASSERT_EQ(reduce(i, 1, comm_, streams[i]), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  for (taccStream_t stream : streams) EXPECT_EQ(taccStreamSynchronize(stream), taccRemoteError);
  EXPECT_EQ(log(0), (Log{"run 2"}));
  for (taccStream_t stream : streams) EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
}

TEST_F(Groups, AFailedCheckRunsNothingAndIsReportedTwice) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_), taccSuccess);
  EXPECT_EQ(taccBcast(&out_[0], 1, taccFloat, 9, comm_, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccSend(nullptr, 1, taccFloat, 1, comm_, nullptr), taccInvalidArgument);
  ASSERT_EQ(reduce(1, 1, comm_), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("taccGroupEnd: taccBcast on rank 0 of 2: root 9"));
  EXPECT_TRUE(world_.events().empty());
  // The next group is not touched by it.
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 1"}));
}

TEST_F(Groups, AnErrorOfOneCommunicatorComesBackAndStopsItsRest) {
  world_.breakRank(1, taccRemoteError, "rank 7 died");
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_), taccSuccess);
  ASSERT_EQ(reduce(0, 1, other_), taccSuccess);
  ASSERT_EQ(taccBarrier(other_, nullptr), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccRemoteError);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("taccAllReduce on rank 1 of 2: rank 7 died"));
  EXPECT_THAT(std::string(taccGetLastError(other_)), HasSubstr("rank 7 died"));
  EXPECT_STREQ(taccGetLastError(comm_), "");
  EXPECT_EQ(log(0), (Log{"run 1"}));
  EXPECT_EQ(log(1), (Log{"run 1"}));
  EXPECT_EQ(out_[0], 0.0F);
}

TEST_F(Groups, WhatTheOpenGroupNeedsIsNotDestroyed) {
  taccStream_t stream = nullptr;
  ASSERT_EQ(taccStreamCreate(&stream), taccSuccess);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(reduce(0, 1, comm_, stream), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm_), taccInvalidUsage);
  EXPECT_THAT(std::string(taccGetLastError(comm_)), HasSubstr("group that is open"));
  EXPECT_EQ(taccCommFinalize(comm_), taccInvalidUsage);
  EXPECT_EQ(taccStreamDestroy(stream), taccInvalidUsage);
  EXPECT_EQ(taccGroupEnd(), taccSuccess);
  EXPECT_EQ(taccStreamDestroy(stream), taccSuccess);
  EXPECT_EQ(log(0), (Log{"run 1"}));
}

TEST_F(Groups, ACommunicatorThatIsAbortedMeanwhileFailsTheEnd) {
  taccComm_t doomed = world_.make(2, 3);
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccBarrier(comm_, nullptr), taccSuccess);
  ASSERT_EQ(taccBarrier(doomed, nullptr), taccSuccess);
  ASSERT_EQ(taccCommAbort(doomed), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccInvalidUsage);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("aborted"));
  EXPECT_TRUE(world_.events().empty());
  EXPECT_EQ(taccBarrier(comm_, nullptr), taccSuccess) << "the other communicator must stay usable";
}

TEST_F(Groups, OneThreadJoinsAsSeveralRanks) {
  joinedWorld().meet(3);
  taccComm_t comms[3] = {};
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(taccCommInitRank(&comms[rank], 3, taccUniqueId{}, rank), taccSuccess);
  EXPECT_EQ(comms[0], nullptr);
  ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(nullptr);
  joinedWorld().meet(1);
  for (int rank = 0; rank < 3; ++rank) {
    int value = -1;
    EXPECT_EQ(taccCommUserRank(comms[rank], &value), taccSuccess);
    EXPECT_EQ(value, rank);
    EXPECT_EQ(taccCommDestroy(comms[rank]), taccSuccess);
  }
}

TEST_F(Groups, WhenOneRankCannotJoinNoneIsMade) {
  taccUniqueId id{};
  id.internal[0] = 'x';
  taccComm_t comms[2] = {};
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(taccCommInitRank(&comms[rank], 2, id, rank), taccSuccess);
  EXPECT_EQ(taccGroupEnd(), taccRemoteError);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("taccCommInitRank: rank 1 is refused"));
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
}

TEST_F(Groups, OneThreadSplitsSeveralRanks) {
  world_.meet(2);
  taccComm_t parts[2] = {comm_, comm_};
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  ASSERT_EQ(taccCommSplit(comm_, 0, 5, &parts[0], nullptr), taccSuccess);
  ASSERT_EQ(taccCommSplit(other_, TACC_SPLIT_NOCOLOR, 6, &parts[1], nullptr), taccSuccess);
  ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(nullptr);
  int rank = -1;
  EXPECT_EQ(taccCommUserRank(parts[0], &rank), taccSuccess);
  EXPECT_EQ(rank, 5);
  EXPECT_EQ(parts[1], nullptr);
  EXPECT_EQ(taccCommDestroy(parts[0]), taccSuccess);
}

TEST_F(Groups, ReduceOverAndOverUsesOneBuffer) {
  const void* packed = nullptr;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(taccGroupStart(), taccSuccess);
    ASSERT_EQ(reduce(0, 8, comm_), taccSuccess);
    ASSERT_EQ(reduce(8, 8, comm_), taccSuccess);
    ASSERT_EQ(taccGroupEnd(), taccSuccess);
    const void* const used = world_.events().back().call.receive;
    EXPECT_TRUE(packed == nullptr || used == packed);
    packed = used;
  }
}

}  // namespace
}  // namespace tacc::test
