// A communicator that is aborted by a function of the program that one of its own calls has called, or a call on
// another one: nobody waits for a thread that waits for it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <tacc/tacc.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace {

#define ASSERT_TACC(call) ASSERT_EQ(call, taccSuccess) << taccGetLastError(nullptr)
#define EXPECT_TACC(call) EXPECT_EQ(call, taccSuccess) << taccGetLastError(nullptr)

/// A reduction of the program that aborts the communicator that it is called for, once others have had time to come to
/// where they wait for it.
void abortLate(void* /*accumulated*/, const void* /*next*/, std::size_t /*count*/, taccDataType_t /*type*/,
               void* context) {
  auto& comm = *static_cast<taccComm_t*>(context);
  if (comm == nullptr) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TACC(taccCommAbort(comm));
  comm = nullptr;
}

/// The group is inside the aborted communicator, and its other call has its turn behind the stream's, whose thread
/// aborts.
TEST(OwnAbort, InAStreamThatTheProgramsGroupWaitsFor) {
  constexpr int ranks = 2;
  std::array<taccComm_t, ranks> aborted{}, other{};
  ASSERT_TACC(taccCommInitAll(aborted.data(), ranks, nullptr));
  ASSERT_TACC(taccCommInitAll(other.data(), ranks, nullptr));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      taccComm_t const comm = aborted[rank];
      taccRedOp_t op = taccSum;
      taccStream_t stream = nullptr;
      std::array<float, 4> values{1, 1, 1, 1};
      ASSERT_TACC(taccRedOpCreateUser(&op, abortLate, &aborted[rank], 1, comm));
      ASSERT_TACC(taccStreamCreate(&stream));
      ASSERT_TACC(taccAllReduce(&values[0], &values[0], 1, taccFloat, op, comm, stream));
      ASSERT_TACC(taccAllReduce(&values[1], &values[1], 1, taccFloat, taccSum, other[rank], stream));
      ASSERT_TACC(taccGroupStart());
      (void)taccAllReduce(&values[2], &values[2], 1, taccFloat, taccSum, comm, nullptr);
      (void)taccAllReduce(&values[3], &values[3], 1, taccFloat, taccSum, other[rank], nullptr);
      (void)taccGroupEnd();
      (void)taccStreamSynchronize(stream);
      EXPECT_TACC(taccStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(aborted[0] == nullptr || aborted[1] == nullptr);
  for (taccComm_t const comm : aborted) {
    if (comm != nullptr) {
      EXPECT_TACC(taccCommAbort(comm));
    }
  }
  for (taccComm_t const comm : other) EXPECT_TACC(taccCommAbort(comm));
}

using Pair = std::array<taccComm_t, 2>;  // the ranks of a communicator

/// Those that no function has aborted.
void abortLeft(const Pair& comms) {
  for (taccComm_t const comm : comms) {
    if (comm != nullptr) {
      EXPECT_TACC(taccCommAbort(comm));
    }
  }
}

/// The communicators have a thread each of their group's, which returns when both have.
TEST(OwnAbort, InOneOfAGroupsCallsOfTheCommunicatorOfAnother) {
  for (const bool isFirst : {false, true}) {
    Pair aborted{}, aborting{};
    ASSERT_TACC(taccCommInitAll(aborted.data(), 2, nullptr));
    ASSERT_TACC(taccCommInitAll(aborting.data(), 2, nullptr));
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank, other = aborted[rank]] {
        taccRedOp_t op = taccSum;
        std::array<float, 2> values{1, 1};
        ASSERT_TACC(taccRedOpCreateUser(&op, abortLate, &aborted[rank], 1, aborting[rank]));
        ASSERT_TACC(taccGroupStart());
        if (isFirst) (void)taccAllReduce(values.data(), values.data(), 1, taccFloat, op, aborting[rank], nullptr);
        (void)taccAllReduce(&values[1], &values[1], 1, taccFloat, taccSum, other, nullptr);
        if (!isFirst) (void)taccAllReduce(values.data(), values.data(), 1, taccFloat, op, aborting[rank], nullptr);
        (void)taccGroupEnd();
        EXPECT_EQ(values[0], 1) << "the reduction of the program keeps what it has";
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(aborted[0] == nullptr || aborted[1] == nullptr);
    abortLeft(aborted);
    abortLeft(aborting);
  }
}

/// Each of two communicators' calls aborts the other communicator, which would be free when its call has returned.
TEST(OwnAbort, OfTwoThatAbortEachOther) {
  for (const bool isOnStream : {false, true}) {
    std::array<Pair, 2> comms{};
    for (Pair& pair : comms) ASSERT_TACC(taccCommInitAll(pair.data(), 2, nullptr));
    const std::array<Pair, 2> used = comms;
    std::vector<std::thread> threads;
    for (std::size_t which = 0; which < 2; ++which) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank, which] {
          taccComm_t const comm = used[which][rank];
          taccRedOp_t op = taccSum;
          taccStream_t stream = nullptr;
          float value = 1;
          ASSERT_TACC(taccRedOpCreateUser(&op, abortLate, &comms[1 - which][rank], 1, comm));
          ASSERT_TACC(taccStreamCreate(&stream));
          (void)taccAllReduce(&value, &value, 1, taccFloat, op, comm, isOnStream ? stream : nullptr);
          (void)taccStreamSynchronize(stream);
          EXPECT_TACC(taccStreamDestroy(stream));
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    for (const Pair& pair : comms) {
      EXPECT_TRUE(pair[0] == nullptr || pair[1] == nullptr);
      abortLeft(pair);
    }
  }
}

/// Of two, which splits its communicator on a small stack, in another thread therefore, and aborts it there.
struct IdleRank {
  static void abortOnce(void* self) {
    auto& rank = *static_cast<IdleRank*>(self);
    if (taccComm_t const comm = rank.armed.exchange(nullptr); comm != nullptr) rank.aborted = taccCommAbort(comm);
  }
  static void* run(void* self) {
    static_cast<IdleRank*>(self)->play();
    return nullptr;
  }
  void play() {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.idle = abortOnce;
    config.idleContext = this;
    taccComm_t comm = nullptr, part = nullptr;
    joined = taccCommInitRankConfig(&comm, 2, id, 0, &config);
    armed = comm;
    if (joined == taccSuccess) split = taccCommSplit(comm, 0, 0, &part, nullptr);
    isDone = true;
  }

  taccUniqueId id;
  std::atomic<taccComm_t> armed{};
  std::atomic<bool> isDone{false};
  taccResult_t joined = taccInternalError, split = taccInternalError, aborted = taccInternalError;
};

TEST(OwnAbort, InASplitOnASmallStack) {
  IdleRank rank;
  ASSERT_TACC(taccGetUniqueId(&rank.id));
  pthread_attr_t attributes;
  pthread_t thread{};
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, std::size_t{128} << 10), 0);
  ASSERT_EQ(::pthread_create(&thread, &attributes, IdleRank::run, &rank), 0);
  ::pthread_attr_destroy(&attributes);
  taccComm_t comm = nullptr, part = nullptr;
  ASSERT_TACC(taccCommInitRank(&comm, 2, rank.id, 1));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!rank.isDone && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(rank.isDone) << "the split waits for its own abort";
  EXPECT_EQ(rank.joined, taccSuccess);
  EXPECT_EQ(rank.aborted, taccSuccess);
  EXPECT_EQ(rank.split, taccRemoteError);
  EXPECT_EQ(taccCommSplit(comm, 0, 1, &part, nullptr), taccRemoteError);
  EXPECT_TACC(taccCommAbort(comm));
  ::pthread_join(thread, nullptr);
}

}  // namespace
