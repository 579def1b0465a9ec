// Streams: order within and between them, errors, and what happens to their work when something ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::HasSubstr;

class Streams : public ::testing::Test {
 protected:
  Streams() {
    for (taccStream_t& stream : streams_) EXPECT_EQ(taccStreamCreate(&stream), taccSuccess);
  }
  ~Streams() override {
    for (taccStream_t stream : streams_) {
      if (stream != nullptr) taccStreamDestroy(stream);
    }
    taccCommDestroy(comm_);
    taccCommDestroy(other_);
  }
  /// A broadcast whose count tells it from others.
  taccResult_t call(std::size_t count, taccStream_t stream, taccComm_t comm) {
    return taccBcast(buffer_.data(), count, taccInt8, 0, comm, stream);
  }
  std::vector<std::size_t> counts(int rank) {
    std::vector<std::size_t> counts;
    for (const Event& event : world_.events()) {
      if (event.rank == rank) counts.push_back(event.call.count);
    }
    return counts;
  }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(0, 2);
  taccComm_t other_ = world_.make(1, 2);
  taccStream_t streams_[3] = {};
  std::vector<char> buffer_ = std::vector<char>(4096);
};

TEST_F(Streams, WorkRunsInTheStreamsThread) {
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(call(2, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
  ASSERT_EQ(call(3, nullptr, comm_), taccSuccess);
  const auto events = world_.events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].thread, std::this_thread::get_id());
  EXPECT_EQ(events[0].thread, events[1].thread);
  EXPECT_EQ(events[2].thread, std::this_thread::get_id());
}

TEST_F(Streams, QueryTellsWhetherWorkIsUnderWay) {
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccSuccess);
  world_.hold(0);
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccInProgress);
  EXPECT_EQ(taccStreamQuery(streams_[1]), taccSuccess);
  world_.letGo(0);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccSuccess);
  EXPECT_STREQ(taccGetLastError(comm_), "");
}

TEST_F(Streams, CallsOfOneCommunicatorKeepTheirOrderAcrossStreams) {
  // Work of the other communicator holds the first stream back; the second stream must wait all the same.
  world_.hold(1);
  ASSERT_EQ(call(100, streams_[0], other_), taccSuccess);
  std::vector<std::size_t> expected;
  for (std::size_t i = 1; i <= 60; ++i) {
    ASSERT_EQ(call(i, streams_[i % 3], comm_), taccSuccess);
    expected.push_back(i);
  }
  ASSERT_TRUE(world_.waitForEvents(1));
  std::thread releaser([&] { world_.letGo(1); });
  ASSERT_EQ(call(61, nullptr, comm_), taccSuccess);
  expected.push_back(61);
  EXPECT_EQ(counts(0), expected);
  releaser.join();
}

TEST_F(Streams, TheNullStreamWaitsForEarlierWork) {
  world_.hold(0);
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  ASSERT_TRUE(world_.waitForEvents(1));
  std::atomic<bool> returned = false;
  std::thread caller([&] {
    EXPECT_EQ(call(2, nullptr, comm_), taccSuccess);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(returned);
  EXPECT_EQ(world_.events().size(), 1u);
  world_.letGo(0);
  caller.join();
  EXPECT_EQ(counts(0), (std::vector<std::size_t>{1, 2}));
}

TEST_F(Streams, DifferentCommunicatorsDoNotWaitForEachOther) {
  world_.hold(0);
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(call(2, streams_[1], other_), taccSuccess);
  EXPECT_EQ(taccStreamSynchronize(streams_[1]), taccSuccess);
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccInProgress);
  world_.letGo(0);
}

TEST_F(Streams, ArgumentsAreCheckedByTheCall) {
  EXPECT_EQ(call(0x8000000000000000U, streams_[0], comm_), taccInvalidArgument);
  EXPECT_EQ(taccBarrier(nullptr, streams_[0]), taccInvalidArgument);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
  EXPECT_TRUE(world_.events().empty());
}

TEST_F(Streams, TheFirstErrorIsKeptUntilSynchronize) {
  world_.breakRank(0, taccTimeout, "rank 1 is late");
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(taccBarrier(comm_, streams_[0]), taccSuccess);
  taccResult_t result;
  while ((result = taccStreamQuery(streams_[0])) == taccInProgress) std::this_thread::yield();
  EXPECT_EQ(result, taccTimeout);
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccTimeout);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccTimeout);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("taccBcast on rank 0 of 2: rank 1 is late"));
  EXPECT_THAT(std::string(taccGetLastError(comm_)), HasSubstr("rank 1 is late"));
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
  // The stream itself is as good as before.
  EXPECT_EQ(call(2, streams_[0], other_), taccSuccess);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
}

TEST_F(Streams, DestroyWaitsForTheWorkAndReturnsItsError) {
  world_.hold(0);
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    world_.letGo(0);
  });
  EXPECT_EQ(taccStreamDestroy(streams_[0]), taccSuccess);
  releaser.join();
  EXPECT_EQ(counts(0), (std::vector<std::size_t>{1}));
  EXPECT_EQ(taccStreamQuery(streams_[0]), taccInvalidArgument);
  EXPECT_EQ(taccStreamDestroy(streams_[0]), taccInvalidArgument);
  EXPECT_EQ(call(1, streams_[0], comm_), taccInvalidArgument);
  streams_[0] = nullptr;
  world_.breakRank(1, taccRemoteError, "gone");
  ASSERT_EQ(call(1, streams_[1], other_), taccSuccess);
  EXPECT_EQ(taccStreamDestroy(streams_[1]), taccRemoteError);
  streams_[1] = nullptr;
}

TEST_F(Streams, NullAndGarbageHandles) {
  EXPECT_EQ(taccStreamCreate(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccStreamDestroy(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccStreamQuery(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccStreamSynchronize(nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("stream is NULL"));
  EXPECT_EQ(taccStreamSynchronize(reinterpret_cast<taccStream_t>(std::uintptr_t{0x77})), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("stream 0x77"));
}

TEST_F(Streams, FinalizeAndDestroyWaitForTheWorkOfTheCommunicator) {
  for (std::size_t i = 1; i <= 20; ++i) ASSERT_EQ(call(i, streams_[i % 3], comm_), taccSuccess);
  EXPECT_EQ(taccCommFinalize(comm_), taccSuccess);
  EXPECT_EQ(counts(0).size(), 20u);
  for (std::size_t i = 1; i <= 20; ++i) ASSERT_EQ(call(i, streams_[i % 3], other_), taccSuccess);
  EXPECT_EQ(taccCommDestroy(other_), taccSuccess);
  EXPECT_EQ(counts(1).size(), 20u);
}

TEST_F(Streams, AbortEndsRunningWorkAndDropsQueuedWork) {
  world_.hold(0);
  ASSERT_EQ(call(1, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(call(2, streams_[0], comm_), taccSuccess);
  ASSERT_EQ(call(3, streams_[1], comm_), taccSuccess);
  ASSERT_TRUE(world_.waitForEvents(1));
  EXPECT_EQ(taccCommAbort(comm_), taccSuccess);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccRemoteError);
  EXPECT_EQ(taccStreamSynchronize(streams_[1]), taccRemoteError);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("aborted"));
  EXPECT_EQ(counts(0), (std::vector<std::size_t>{1}));
}

TEST_F(Streams, AbortDoesNotWaitForQueuedWorkBehindAnotherCommunicator) {
  world_.hold(1);
  ASSERT_EQ(call(1, streams_[0], other_), taccSuccess);
  ASSERT_EQ(call(2, streams_[0], comm_), taccSuccess);
  ASSERT_TRUE(world_.waitForEvents(1));
  EXPECT_EQ(taccCommAbort(comm_), taccSuccess);
  world_.letGo(1);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccRemoteError);
  EXPECT_TRUE(counts(0).empty());
}

TEST_F(Streams, SeveralThreadsMayUseOneStream) {
  std::thread first([&] {
    for (std::size_t i = 1; i <= 200; ++i) ASSERT_EQ(call(i, streams_[0], comm_), taccSuccess);
  });
  for (std::size_t i = 1; i <= 200; ++i) ASSERT_EQ(call(i, streams_[0], other_), taccSuccess);
  first.join();
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccSuccess);
  std::vector<std::size_t> expected(200);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(counts(0), expected);
  EXPECT_EQ(counts(1), expected);
}

}  // namespace
}  // namespace tacc::test
