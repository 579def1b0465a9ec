// Requests and events: order, errors, handles, and what outlives what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::HasSubstr;

class Requests : public ::testing::Test {
 protected:
  Requests() {
    for (taccStream_t& stream : streams_) EXPECT_EQ(taccStreamCreate(&stream), taccSuccess);
    EXPECT_EQ(taccEventCreate(&event_), taccSuccess);
  }
  ~Requests() override {
    for (taccStream_t stream : streams_) {
      if (stream != nullptr) taccStreamDestroy(stream);
    }
    if (event_ != nullptr) taccEventDestroy(event_);
    if (comm_ != nullptr) taccCommDestroy(comm_);
    taccCommDestroy(other_);
  }
  /// A broadcast whose count tells it from others.
  void call(std::size_t count, taccStream_t stream, taccComm_t comm) {
    ASSERT_EQ(taccBcast(buffer_.data(), count, taccInt8, 0, comm, stream), taccSuccess);
  }
  taccRequest_t request(taccStream_t stream) {
    taccRequest_t made = nullptr;
    EXPECT_EQ(taccStreamRequest(stream, &made), taccSuccess) << taccGetLastError(nullptr);
    return made;
  }
  std::vector<std::size_t> counts() {
    std::vector<std::size_t> counts;
    for (const Event& event : world_.events()) counts.push_back(event.call.count);
    return counts;
  }

  FakeWorld world_;
  taccComm_t comm_ = world_.make(0, 2);
  taccComm_t other_ = world_.make(1, 2);
  taccStream_t streams_[2] = {};
  taccEvent_t event_ = nullptr;
  std::vector<char> buffer_ = std::vector<char>(4096);
};

TEST_F(Requests, EachIsForTheCallThatWasGivenLast) {
  world_.hold(0);
  call(1, streams_[0], other_);
  taccRequest_t const first = request(streams_[0]);
  call(2, streams_[0], comm_);
  taccRequest_t const second = request(streams_[0]);
  EXPECT_EQ(taccRequestWait(first), taccSuccess);
  EXPECT_EQ(taccRequestTest(first), taccSuccess);
  EXPECT_EQ(taccRequestTest(second), taccInProgress);
  EXPECT_EQ(taccRequestWaitFor(second, 0), taccInProgress);
  EXPECT_EQ(taccRequestWaitFor(second, 0.01), taccInProgress);
  world_.letGo(0);
  EXPECT_EQ(taccRequestWaitFor(second, INFINITY), taccSuccess);
  EXPECT_EQ(taccRequestDestroy(first), taccSuccess);
  EXPECT_EQ(taccRequestDestroy(second), taccSuccess);
}

TEST_F(Requests, KeepTheErrorOfTheirCallAlone) {
  call(1, streams_[0], comm_);
  taccRequest_t const good = request(streams_[0]);
  ASSERT_EQ(taccRequestWait(good), taccSuccess);
  world_.breakRank(0, taccTimeout, "rank 1 is late");
  call(2, streams_[0], comm_);
  taccRequest_t const bad = request(streams_[0]);
  call(3, streams_[0], other_);
  taccRequest_t const later = request(streams_[0]);
  EXPECT_EQ(taccRequestWait(later), taccSuccess);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccTimeout);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(taccRequestTest(bad), taccTimeout);
    EXPECT_EQ(taccRequestWait(bad), taccTimeout);
    EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("taccBcast on rank 0 of 2: rank 1 is late"));
    EXPECT_EQ(taccRequestTest(good), taccSuccess);
    EXPECT_EQ(taccRequestTest(later), taccSuccess);
  }
  for (taccRequest_t one : {good, bad, later}) EXPECT_EQ(taccRequestDestroy(one), taccSuccess);
  // Of a call that had failed before anybody asked.
  call(4, streams_[0], comm_);
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccTimeout);
  taccRequest_t const late = request(streams_[0]);
  EXPECT_EQ(taccRequestTest(late), taccTimeout);
  EXPECT_EQ(taccRequestDestroy(late), taccSuccess);
}

TEST_F(Requests, OutliveTheirStreamAndAreNotNeededByIt) {
  world_.hold(0);
  call(1, streams_[0], comm_);
  taccRequest_t const kept = request(streams_[0]);
  taccRequest_t const destroyed = request(streams_[0]);
  EXPECT_EQ(taccRequestDestroy(destroyed), taccSuccess);
  ASSERT_TRUE(world_.waitForEvents(1));
  world_.letGo(0);
  EXPECT_EQ(taccStreamDestroy(streams_[0]), taccSuccess);
  streams_[0] = nullptr;
  EXPECT_EQ(taccRequestTest(kept), taccSuccess);
  EXPECT_EQ(taccRequestDestroy(kept), taccSuccess);
}

TEST_F(Requests, AbortEndsTheWait) {
  world_.hold(0);
  call(1, streams_[0], comm_);
  taccRequest_t const running = request(streams_[0]);
  call(2, streams_[0], comm_);
  taccRequest_t const queued = request(streams_[0]);
  ASSERT_TRUE(world_.waitForEvents(1));
  std::thread waiter([&] { EXPECT_EQ(taccRequestWait(queued), taccRemoteError); });
  EXPECT_EQ(taccCommAbort(comm_), taccSuccess);
  comm_ = nullptr;
  waiter.join();
  EXPECT_EQ(taccRequestWait(running), taccRemoteError);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), AnyOf(HasSubstr("taccCommAbort"), HasSubstr("aborted")));
  for (taccRequest_t one : {running, queued}) EXPECT_EQ(taccRequestDestroy(one), taccSuccess);
}

TEST_F(Requests, AGroupCountsAsOneCall) {
  ASSERT_EQ(taccGroupStart(), taccSuccess);
  call(1, streams_[0], comm_);
  taccRequest_t made = nullptr;
  EXPECT_EQ(taccStreamRequest(streams_[0], &made), taccInvalidUsage);
  EXPECT_EQ(taccEventRecord(event_, streams_[0]), taccInvalidUsage);
  call(2, streams_[0], other_);
  world_.hold(1);
  ASSERT_EQ(taccGroupEnd(), taccSuccess);
  made = request(streams_[0]);
  ASSERT_TRUE(world_.waitForEvents(2));
  EXPECT_EQ(taccRequestTest(made), taccInProgress);
  world_.letGo(1);
  EXPECT_EQ(taccRequestWait(made), taccSuccess);
  EXPECT_EQ(taccRequestDestroy(made), taccSuccess);
}

TEST_F(Requests, BadHandlesAndArguments) {
  taccRequest_t made = nullptr;
  EXPECT_EQ(taccStreamRequest(nullptr, &made), taccInvalidArgument);
  EXPECT_EQ(taccStreamRequest(streams_[0], nullptr), taccInvalidArgument);
  EXPECT_EQ(taccStreamRequest(streams_[0], &made), taccInvalidUsage);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("no work yet"));
  EXPECT_EQ(taccRequestTest(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccRequestWait(reinterpret_cast<taccRequest_t>(std::uintptr_t{0x77})), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("request 0x77 is not a request"));
  call(1, streams_[0], comm_);
  made = request(streams_[0]);
  EXPECT_EQ(taccRequestWaitFor(made, -1), taccInvalidArgument);
  EXPECT_EQ(taccRequestWaitFor(made, NAN), taccInvalidArgument);
  EXPECT_EQ(taccRequestDestroy(made), taccSuccess);
  EXPECT_EQ(taccRequestTest(made), taccInvalidArgument);
  EXPECT_EQ(taccRequestDestroy(made), taccInvalidArgument);
  EXPECT_EQ(taccRequestDestroy(nullptr), taccInvalidArgument);

  EXPECT_EQ(taccEventCreate(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccEventQuery(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccEventRecord(reinterpret_cast<taccEvent_t>(std::uintptr_t{0x77}), streams_[0]), taccInvalidArgument);
  EXPECT_EQ(taccStreamWaitEvent(streams_[0], nullptr), taccInvalidArgument);
  EXPECT_EQ(taccEventDestroy(event_), taccSuccess);
  EXPECT_EQ(taccEventSynchronize(event_), taccInvalidArgument);
  EXPECT_EQ(taccEventDestroy(event_), taccInvalidArgument);
  event_ = nullptr;
}

TEST_F(Requests, AnEventIsReachedWhenWhatCameBeforeHasEnded) {
  EXPECT_EQ(taccEventQuery(event_), taccSuccess);
  EXPECT_EQ(taccEventSynchronize(event_), taccSuccess);
  world_.hold(0);
  call(1, streams_[0], comm_);
  ASSERT_EQ(taccEventRecord(event_, streams_[0]), taccSuccess);
  call(2, streams_[0], other_);
  EXPECT_EQ(taccEventQuery(event_), taccInProgress);
  ASSERT_EQ(taccEventRecord(event_, streams_[1]), taccSuccess);
  EXPECT_EQ(taccEventQuery(event_), taccSuccess);
  ASSERT_EQ(taccEventRecord(event_, streams_[0]), taccSuccess);
  EXPECT_EQ(taccEventQuery(event_), taccInProgress);
  world_.breakRank(0, taccTimeout, "rank 1 is late");
  world_.letGo(0);
  EXPECT_EQ(taccEventSynchronize(event_), taccSuccess);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(taccStreamSynchronize(streams_[0]), taccTimeout);
  ASSERT_EQ(taccEventRecord(event_, nullptr), taccSuccess);
  EXPECT_EQ(taccEventQuery(event_), taccSuccess);
}

TEST_F(Requests, AStreamWaitsForAnotherOne) {
  world_.hold(0);
  call(1, streams_[0], comm_);
  ASSERT_EQ(taccEventRecord(event_, streams_[0]), taccSuccess);
  ASSERT_EQ(taccStreamWaitEvent(streams_[1], event_), taccSuccess);
  call(2, streams_[1], other_);
  ASSERT_TRUE(world_.waitForEvents(1));
  // The place was taken when it was called: neither another one nor the event's end matters.
  ASSERT_EQ(taccEventRecord(event_, nullptr), taccSuccess);
  EXPECT_EQ(taccEventDestroy(event_), taccSuccess);
  event_ = nullptr;
  EXPECT_EQ(taccStreamQuery(streams_[1]), taccInProgress);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{1}));
  world_.letGo(0);
  EXPECT_EQ(taccStreamSynchronize(streams_[1]), taccSuccess);
  EXPECT_EQ(counts(), (std::vector<std::size_t>{1, 2}));
}

TEST_F(Requests, TheCallersThreadWaitsForAnEventOnTheNullStream) {
  world_.hold(0);
  call(1, streams_[0], comm_);
  ASSERT_EQ(taccEventRecord(event_, streams_[0]), taccSuccess);
  std::thread releaser([&] {
    EXPECT_TRUE(world_.waitForEvents(1));
    world_.letGo(0);
  });
  EXPECT_EQ(taccStreamWaitEvent(nullptr, event_), taccSuccess);
  EXPECT_EQ(taccEventQuery(event_), taccSuccess);
  releaser.join();
}

}  // namespace
}  // namespace tacc::test
