// The life of a communicator's handle: making, asking, finalizing, destroying, aborting, and using it too late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::HasSubstr;

std::string threadError() { return taccGetLastError(nullptr); }

TEST(Handles, NullAndGarbage) {
  float x = 0;
  EXPECT_EQ(taccAllReduce(&x, &x, 1, taccFloat, taccSum, nullptr, nullptr), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("taccAllReduce: comm is NULL"));
  alignas(64) std::array<std::uint64_t, 64> garbage{};
  auto* const fake = reinterpret_cast<taccComm_t>(garbage.data());
  EXPECT_EQ(taccBarrier(fake, nullptr), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("is not a communicator"));
  auto* const misaligned = reinterpret_cast<taccComm_t>(std::uintptr_t{0x1003});
  EXPECT_EQ(taccCommDestroy(misaligned), taccInvalidArgument);
  EXPECT_EQ(taccCommAbort(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccCommFinalize(fake), taccInvalidArgument);
  int value = 5;
  EXPECT_EQ(taccCommCount(nullptr, &value), taccInvalidArgument);
  EXPECT_EQ(value, 5);
  EXPECT_STREQ(taccCommLastAlgorithm(nullptr), "");
}

TEST(Handles, Queries) {
  FakeWorld world;
  taccComm_t comm = world.make(2, 5);
  int value = -1;
  EXPECT_EQ(taccCommCount(comm, &value), taccSuccess);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(taccCommUserRank(comm, &value), taccSuccess);
  EXPECT_EQ(value, 2);
  taccResult_t async = taccInternalError;
  EXPECT_EQ(taccCommGetAsyncError(comm, &async), taccSuccess);
  EXPECT_EQ(async, taccSuccess);
  world.breakRank(2, taccTimeout, "late");
  EXPECT_EQ(taccCommGetAsyncError(comm, &async), taccSuccess);
  EXPECT_EQ(async, taccTimeout);
  EXPECT_STREQ(taccCommLastAlgorithm(comm), "fake");
  EXPECT_STREQ(taccExplain(comm, "allreduce", 8), "allreduce of 8 bytes is faked");
  EXPECT_STREQ(taccGetLastError(comm), "");
  EXPECT_EQ(taccExplain(comm, "all", 8), nullptr);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("allgather"));
  EXPECT_EQ(taccCommCount(comm, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("count is NULL"));
  EXPECT_EQ(taccCommUserRank(comm, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccCommGetAsyncError(comm, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("asyncError is NULL"));
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Handles, AfterFinalizeOnlyQueriesAndDestroy) {
  FakeWorld world;
  taccComm_t comm = world.make(0, 2);
  EXPECT_EQ(taccCommFinalize(comm), taccSuccess);
  EXPECT_EQ(taccBarrier(comm, nullptr), taccInvalidUsage);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("finalized"));
  EXPECT_EQ(taccCommFinalize(comm), taccInvalidUsage);
  float x = 0;
  EXPECT_EQ(taccSend(&x, 1, taccFloat, 1, comm, nullptr), taccInvalidUsage);
  int value = 0;
  EXPECT_EQ(taccCommCount(comm, &value), taccSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_STREQ(taccCommLastAlgorithm(comm), "fake");
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  EXPECT_TRUE(world.events().empty());
}

TEST(Handles, AfterDestroyAndAbortTheHandleIsRecognized) {
  FakeWorld world;
  taccComm_t destroyed = world.make(0, 2);
  taccComm_t aborted = world.make(1, 2);
  EXPECT_EQ(taccCommDestroy(destroyed), taccSuccess);
  EXPECT_EQ(taccCommAbort(aborted), taccSuccess);
  EXPECT_EQ(taccBarrier(destroyed, nullptr), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("destroyed"));
  EXPECT_EQ(taccBarrier(aborted, nullptr), taccInvalidUsage);
  EXPECT_THAT(threadError(), HasSubstr("aborted"));
  EXPECT_EQ(taccCommDestroy(destroyed), taccInvalidArgument);
  EXPECT_EQ(taccCommAbort(destroyed), taccInvalidArgument);
  EXPECT_EQ(taccCommDestroy(aborted), taccInvalidUsage);
  EXPECT_EQ(taccCommAbort(aborted), taccInvalidUsage);
  taccResult_t async;
  EXPECT_EQ(taccCommGetAsyncError(aborted, &async), taccInvalidUsage);
}

TEST(Handles, ManyCommunicatorsOneAfterTheOther) {
  FakeWorld world;
  for (int i = 0; i < 1000; ++i) {
    taccComm_t comm = world.make(0, 1);
    ASSERT_EQ(taccBarrier(comm, nullptr), taccSuccess);
    ASSERT_STREQ(taccGetLastError(comm), "") << "an older communicator's error is shown";
    ASSERT_EQ(taccSend(nullptr, 1, taccFloat, 7, comm, nullptr), taccInvalidArgument);
    ASSERT_EQ(taccCommDestroy(comm), taccSuccess);
  }
}

TEST(Handles, AbortFromAnotherThreadEndsABlockedCallFirst) {
  FakeWorld world;
  taccComm_t comm = world.make(0, 2);
  world.hold(0);
  std::atomic<bool> left = false;
  taccResult_t result = taccSuccess;
  std::string message;
  std::thread blocked([&] {
    result = taccBarrier(comm, nullptr);
    left = true;
    message = taccGetLastError(nullptr);
  });
  ASSERT_TRUE(world.waitForEvents(1));
  EXPECT_EQ(taccCommAbort(comm), taccSuccess);
  EXPECT_TRUE(world.events().size() == 1);
  blocked.join();
  EXPECT_TRUE(left);
  EXPECT_EQ(result, taccRemoteError);
  EXPECT_THAT(message, HasSubstr("taccBarrier on rank 0 of 2: taccCommAbort was called on rank 0"));
  EXPECT_EQ(taccBarrier(comm, nullptr), taccInvalidUsage);
}

TEST(Handles, ASecondThreadInsideIsRefusedAndQueriesAreNot) {
  FakeWorld world;
  taccComm_t comm = world.make(0, 2);
  world.hold(0);
  std::thread first([&] { EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess); });
  ASSERT_TRUE(world.waitForEvents(1));
  EXPECT_EQ(taccBarrier(comm, nullptr), taccInvalidUsage);
  EXPECT_THAT(threadError(), HasSubstr("one thread at a time"));
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("one thread at a time"));
  int value = 0;
  EXPECT_EQ(taccCommCount(comm, &value), taccSuccess);
  EXPECT_EQ(value, 2);
  world.letGo(0);
  first.join();
  EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Handles, LastErrorsAreReadWhileOthersAreWritten) {
  FakeWorld world;
  taccComm_t comm = world.make(0, 2);
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      const std::string text = taccGetLastError(comm);
      EXPECT_TRUE(text.empty() || text.find("root") != std::string::npos) << text;
    }
  });
  float x = 0;
  for (int root = 2; root < 300; ++root)
    EXPECT_EQ(taccBcast(&x, 1, taccFloat, root, comm, nullptr), taccInvalidArgument);
  done = true;
  reader.join();
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Handles, ThreadsHaveTheirOwnLastError) {
  EXPECT_EQ(taccGetVersion(nullptr), taccInvalidArgument);
  EXPECT_EQ(threadError(), "taccGetVersion: version is NULL");
  std::thread([] { EXPECT_EQ(threadError(), ""); }).join();
}

TEST(Handles, NamesAppearInMessages) {
  FakeWorld world;
  CommConfig config;
  config.name = "gradients";
  taccComm_t comm = world.make(0, 2, config);
  EXPECT_EQ(taccBcast(nullptr, 1, taccFloat, 0, comm, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("on rank 0 of 2 of \"gradients\": buff is NULL"));
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Handles, Registrations) {
  FakeWorld world;
  taccComm_t comm = world.make(0, 2);
  taccComm_t other = world.make(1, 2);
  int buffer[4];
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_EQ(taccCommRegister(comm, buffer, 16, &first), taccSuccess);
  ASSERT_EQ(taccCommRegister(comm, buffer, 8, &second), taccSuccess);
  ASSERT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(taccCommDeregister(other, first), taccInvalidArgument);
  EXPECT_EQ(taccCommDeregister(comm, first), taccSuccess);
  EXPECT_EQ(taccCommDeregister(comm, first), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("handle"));
  EXPECT_EQ(world.events().size(), 2u) << "the buffer is still registered once";
  EXPECT_EQ(taccCommDeregister(comm, second), taccSuccess);
  const auto events = world.events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].what, "register");
  EXPECT_EQ(events[0].call.count, 16u);
  EXPECT_EQ(events[2].what, "deregister");
  EXPECT_EQ(events[2].call.receive, buffer);
  EXPECT_EQ(taccCommRegister(comm, nullptr, 8, &first), taccInvalidArgument);
  EXPECT_EQ(taccCommRegister(comm, buffer, 0, &first), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("bytes is 0"));
  EXPECT_EQ(taccCommRegister(comm, buffer, 8, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  EXPECT_EQ(taccCommDestroy(other), taccSuccess);
}

TEST(Handles, WhatACommunicatorIs) {
  FakeWorld world;
  CommConfig config;
  config.name = std::string(200, 'n');
  taccComm_t const comm = world.make(1, 4, config);
  taccCommInfo_t info{};
  EXPECT_EQ(taccCommGetInfo(comm, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccCommGetInfo(comm, &info), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("info->size is 0; set it to sizeof(taccCommInfo_t)"));
  info.size = sizeof info;
  EXPECT_EQ(taccCommGetInfo(nullptr, &info), taccInvalidArgument);
  ASSERT_EQ(taccCommGetInfo(comm, &info), taccSuccess);
  EXPECT_EQ(info.size, sizeof info);
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.ranks, 4);
  EXPECT_EQ(info.host, 1);
  EXPECT_EQ(info.hosts, 3);
  EXPECT_EQ(info.localRank, 2);
  EXPECT_EQ(info.localRanks, 4);
  EXPECT_STREQ(info.hostName, "a.host.of.the.tests");
  EXPECT_EQ(info.name, std::string(127, 'n')) << "cut, and ended by a zero";
  EXPECT_STREQ(info.transport, "pigeon");
  EXPECT_EQ(info.topologyDigest, 0u);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Library, VersionStringsMemoryAndIds) {
  int version = 0;
  EXPECT_EQ(taccGetVersion(&version), taccSuccess);
  EXPECT_EQ(version, TACC_VERSION_CODE);
  for (int result = -1; result <= taccNumResults + 1; ++result) {
    EXPECT_STRNE(taccGetErrorString(static_cast<taccResult_t>(result)), "");
  }
  EXPECT_STREQ(taccGetErrorString(taccInvalidArgument), "invalid argument");
  EXPECT_EQ(taccGetUniqueId(nullptr), taccInvalidArgument);
  EXPECT_EQ(threadError(), "taccGetUniqueId: uniqueId is NULL");
  EXPECT_EQ(taccMemAlloc(nullptr, 8), taccInvalidArgument);
  void* pointer = &version;
  EXPECT_EQ(taccMemAlloc(&pointer, SIZE_MAX), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("bytes 18446744073709551615"));
  EXPECT_EQ(pointer, &version) << "outputs are written on success only";
  ASSERT_EQ(taccMemAlloc(&pointer, 100), taccSuccess);
  ASSERT_NE(pointer, nullptr);
  EXPECT_EQ(taccMemFree(pointer), taccSuccess);
  EXPECT_EQ(taccMemFree(nullptr), taccSuccess);
  EXPECT_EQ(taccMemAlloc(&pointer, 0), taccSuccess);
  EXPECT_EQ(pointer, nullptr);

  EXPECT_EQ(taccMemReserve(nullptr, 8), taccInvalidArgument);
  EXPECT_EQ(taccMemReserve(&pointer, SIZE_MAX), taccInvalidArgument);
  EXPECT_THAT(threadError(), HasSubstr("taccMemReserve: bytes 18446744073709551615"));
}

}  // namespace
}  // namespace tacc::test
