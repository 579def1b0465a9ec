// The C interface over real communicators, as a program uses it: ranks as threads, several ranks in one thread,
// streams, groups and aborting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "tacc/tacc.h"

namespace {

using ::testing::HasSubstr;

#define ASSERT_TACC(call) ASSERT_EQ(call, taccSuccess) << taccGetLastError(nullptr)
#define EXPECT_TACC(call) EXPECT_EQ(call, taccSuccess) << taccGetLastError(nullptr)

/// All ranks of a communicator in this process.
class World {
 public:
  explicit World(int ranks) : comms(static_cast<std::size_t>(ranks)) {
    EXPECT_TACC(taccCommInitAll(comms.data(), ranks, nullptr));
  }
  ~World() {
    for (taccComm_t comm : comms) {
      if (comm != nullptr) {
        EXPECT_TACC(taccCommDestroy(comm));
      }
    }
  }
  int size() const { return static_cast<int>(comms.size()); }

  /// Runs `body(rank, comm)` in a thread for every rank.
  void inThreads(const std::function<void(int, taccComm_t)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] { body(rank, comms[static_cast<std::size_t>(rank)]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<taccComm_t> comms;
};

/// rank + 1, rank + 2, ...
std::vector<float> valuesOf(int rank, std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(rank + 1));
  return values;
}

/// The sum of valuesOf() over the ranks, at `i`.
float sumAt(int ranks, std::size_t i) {
  return static_cast<float>(ranks * (ranks + 1) / 2) + static_cast<float>(ranks) * static_cast<float>(i);
}

void expectSums(const std::vector<float>& values, int ranks) {
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], sumAt(ranks, i)) << "at " << i;
}

/// clearenv() leaves `environ` null.
TEST(Environment, MayBeCleared) {
  tacc::test::ChildProcess child([] {
    ::clearenv();
    taccUniqueId id;
    taccComm_t comm = nullptr, part = nullptr, launched = nullptr;
    const char* launcher = "";
    int rank = -1, ranks = -1;
    // Nothing says how many ranks a launcher has started.
    return taccGetUniqueId(&id) == taccSuccess && taccCommInitRank(&comm, 1, id, 0) == taccSuccess &&
           taccCommSplit(comm, 0, 0, &part, nullptr) == taccSuccess &&
           taccCommInitEnv(&launched, nullptr) == taccInvalidUsage &&
           taccGetLaunch(&launcher, &rank, &ranks) == taccSuccess && launcher == nullptr && rank == 0 && ranks == 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(EndToEnd, RanksAsThreads) {
  World world(3);
  world.inThreads([&](int rank, taccComm_t comm) {
    for (const std::size_t count : {0, 1, 7, 1000, 100000}) {
      const std::vector<float> in = valuesOf(rank, count);
      std::vector<float> out(count);
      ASSERT_TACC(taccAllReduce(in.data(), out.data(), count, taccFloat, taccSum, comm, nullptr));
      expectSums(out, 3);
      std::vector<float> inPlace = in;
      ASSERT_TACC(taccAllReduce(inPlace.data(), inPlace.data(), count, taccFloat, taccSum, comm, nullptr));
      expectSums(inPlace, 3);
    }
    std::vector<int> all(3);
    ASSERT_TACC(taccAllGather(&rank, all.data(), 1, taccInt, comm, nullptr));
    EXPECT_EQ(all, (std::vector<int>{0, 1, 2}));
    int value = rank == 2 ? 42 : 0;
    ASSERT_TACC(taccBcast(&value, 1, taccInt, 2, comm, nullptr));
    EXPECT_EQ(value, 42);
    int sum = -1;
    ASSERT_TACC(taccReduce(&rank, rank == 1 ? &sum : nullptr, 1, taccInt, taccMax, 1, comm, nullptr));
    EXPECT_EQ(sum, rank == 1 ? 2 : -1);
    EXPECT_STRNE(taccCommLastAlgorithm(comm), "");
    ASSERT_TACC(taccBarrier(comm, nullptr));
  });
}

TEST(EndToEnd, OneThreadHoldsAllRanksInAGroup) {
  World world(3);
  std::vector<std::vector<float>> out(3, std::vector<float>(5000));
  std::vector<std::vector<float>> in;
  for (int rank = 0; rank < 3; ++rank) in.push_back(valuesOf(rank, 5000));
  for (int round = 0; round < 3; ++round) {
    for (auto& buffer : out) buffer.assign(5000, 0.0F);
    ASSERT_TACC(taccGroupStart());
    for (std::size_t rank = 0; rank < 3; ++rank) {
      ASSERT_TACC(
          taccAllReduce(in[rank].data(), out[rank].data(), 5000, taccFloat, taccSum, world.comms[rank], nullptr));
    }
    ASSERT_TACC(taccGroupEnd());
    for (const auto& buffer : out) expectSums(buffer, 3);
  }
}

TEST(EndToEnd, OneThreadJoinsAndSplitsAsSeveralRanks) {
  taccUniqueId id;
  ASSERT_TACC(taccGetUniqueId(&id));
  taccComm_t comms[4] = {};
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.initTimeout = 30;
  config.name = "joined";
  ASSERT_TACC(taccGroupStart());
  for (int rank = 0; rank < 4; ++rank) ASSERT_TACC(taccCommInitRankConfig(&comms[rank], 4, id, rank, &config));
  ASSERT_TACC(taccGroupEnd());
  taccComm_t parts[4] = {};
  ASSERT_TACC(taccGroupStart());
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TACC(taccCommSplit(comms[rank], rank == 3 ? TACC_SPLIT_NOCOLOR : rank % 2, -rank, &parts[rank], nullptr));
  }
  ASSERT_TACC(taccGroupEnd());
  EXPECT_EQ(parts[3], nullptr);
  int count = 0;
  int rank = -1;
  ASSERT_TACC(taccCommCount(parts[0], &count));
  ASSERT_TACC(taccCommUserRank(parts[0], &rank));
  EXPECT_EQ(count, 2);
  EXPECT_EQ(rank, 1) << "the key puts rank 2 first";
  ASSERT_TACC(taccCommCount(parts[1], &count));
  EXPECT_EQ(count, 1);
  int values[2] = {10, 20};
  ASSERT_TACC(taccGroupStart());
  ASSERT_TACC(taccAllReduce(&values[0], &values[0], 1, taccInt, taccSum, parts[0], nullptr));
  ASSERT_TACC(taccAllReduce(&values[1], &values[1], 1, taccInt, taccSum, parts[2], nullptr));
  ASSERT_TACC(taccGroupEnd());
  EXPECT_EQ(values[0], 30);
  EXPECT_EQ(values[1], 30);
  for (taccComm_t comm : {parts[0], parts[1], parts[2], comms[0], comms[1], comms[2], comms[3]}) {
    EXPECT_TACC(taccCommDestroy(comm));
  }
}

TEST(EndToEnd, SmallAllReducesOfAGroupAreFusedAndRight) {
  World world(2);
  world.inThreads([&](int rank, taccComm_t comm) {
    float factor = rank == 0 ? 2.0F : 3.0F;
    taccRedOp_t op;
    ASSERT_TACC(taccRedOpCreatePreMulSum(&op, &factor, taccFloat, taccScalarHostImmediate, comm));
    std::vector<std::vector<float>> out;
    std::vector<float> ones(100, 1.0F);
    std::vector<float> scaled(100);
    for (std::size_t i = 0; i < 50; ++i) out.push_back(valuesOf(rank, i));
    ASSERT_TACC(taccGroupStart());
    for (auto& buffer : out) {
      ASSERT_TACC(taccAllReduce(buffer.data(), buffer.data(), buffer.size(), taccFloat, taccSum, comm, nullptr));
    }
    ASSERT_TACC(taccAllReduce(&ones[0], &scaled[0], 60, taccFloat, op, comm, nullptr));
    ASSERT_TACC(taccAllReduce(&ones[60], &scaled[60], 40, taccFloat, op, comm, nullptr));
    ASSERT_TACC(taccGroupEnd());
    for (const auto& buffer : out) expectSums(buffer, 2);
    for (const float value : scaled) ASSERT_EQ(value, 5.0F);
    ASSERT_TACC(taccRedOpDestroy(op, comm));
  });
}

TEST(EndToEnd, AllRanksExchangeInAGroup) {
  World world(3);
  world.inThreads([&](int rank, taccComm_t comm) {
    const std::vector<float> mine = valuesOf(10 * rank, 20000);
    std::vector<std::vector<float>> theirs(3, std::vector<float>(20000));
    std::vector<float> sums(8);
    const std::vector<float> small = valuesOf(rank, 8);
    ASSERT_TACC(taccGroupStart());
    // One rank makes its collective last, which must not matter.
    if (rank != 1) {
      ASSERT_TACC(taccAllReduce(small.data(), sums.data(), 8, taccFloat, taccSum, comm, nullptr));
    }
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      ASSERT_TACC(taccSend(mine.data(), mine.size(), taccFloat, peer, comm, nullptr));
      ASSERT_TACC(taccRecv(theirs[static_cast<std::size_t>(peer)].data(), 20000, taccFloat, peer, comm, nullptr));
    }
    if (rank == 1) {
      ASSERT_TACC(taccAllReduce(small.data(), sums.data(), 8, taccFloat, taccSum, comm, nullptr));
    }
    ASSERT_TACC(taccGroupEnd());
    expectSums(sums, 3);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank) {
        EXPECT_EQ(theirs[static_cast<std::size_t>(peer)], valuesOf(10 * peer, 20000));
      }
    }
  });
}

TEST(EndToEnd, SendMeetsReceiveOutsideAGroup) {
  World world(2);
  world.inThreads([&](int rank, taccComm_t comm) {
    std::vector<float> values = valuesOf(rank, 3000);
    if (rank == 0) {
      ASSERT_TACC(taccSend(values.data(), values.size(), taccFloat, 1, comm, nullptr));
    } else {
      ASSERT_TACC(taccRecv(values.data(), values.size(), taccFloat, 0, comm, nullptr));
    }
    EXPECT_EQ(values, valuesOf(0, 3000));
  });
}

TEST(EndToEnd, StreamsKeepTheOrderOfACommunicator) {
  World world(2);
  world.inThreads([&](int rank, taccComm_t comm) {
    taccStream_t streams[2] = {};
    for (taccStream_t& stream : streams) ASSERT_TACC(taccStreamCreate(&stream));
    // Each call doubles what the one before wrote, so only the right order gives the right value.
    std::vector<float> values(64, 1.0F);
    for (std::size_t i = 0; i < 20; ++i) {
      taccStream_t const stream = streams[(i + static_cast<std::size_t>(rank)) % 2];
      ASSERT_TACC(taccAllReduce(values.data(), values.data(), 64, taccFloat, taccSum, comm, stream));
    }
    ASSERT_TACC(taccAllReduce(values.data(), values.data(), 64, taccFloat, taccSum, comm, nullptr));
    EXPECT_EQ(values[0], static_cast<float>(1 << 21));
    EXPECT_EQ(values[63], static_cast<float>(1 << 21));
    for (taccStream_t stream : streams) ASSERT_TACC(taccStreamDestroy(stream));
  });
}

TEST(EndToEnd, OneThreadAndOneStreamForAllRanks) {
  World world(2);
  taccStream_t stream = nullptr;
  ASSERT_TACC(taccStreamCreate(&stream));
  std::vector<std::vector<float>> values = {valuesOf(0, 3000), valuesOf(1, 3000)};
  ASSERT_TACC(taccGroupStart());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    float* const buffer = values[rank].data();
    ASSERT_TACC(taccAllReduce(buffer, buffer, 3000, taccFloat, taccSum, world.comms[rank], stream));
  }
  ASSERT_TACC(taccGroupEnd());
  ASSERT_TACC(taccStreamSynchronize(stream));
  for (const auto& buffer : values) expectSums(buffer, 2);
  EXPECT_TACC(taccStreamDestroy(stream));
}

TEST(EndToEnd, LibraryMemoryAndRegisteredBuffers) {
  World world(2);
  world.inThreads([&](int rank, taccComm_t comm) {
    const std::size_t count = 50000;
    void* memory = nullptr;
    ASSERT_TACC(taccMemAlloc(&memory, count * sizeof(float)));
    auto* const values = static_cast<float*>(memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
    EXPECT_EQ(values[count - 1], 0.0F);
    const std::vector<float> in = valuesOf(rank, count);
    std::copy(in.begin(), in.end(), values);
    void* handle = nullptr;
    ASSERT_TACC(taccCommRegister(comm, memory, count * sizeof(float), &handle));
    ASSERT_TACC(taccAllReduce(values, values, count, taccFloat, taccSum, comm, nullptr));
    expectSums(std::vector<float>(values, values + count), 2);
    ASSERT_TACC(taccCommDeregister(comm, handle));
    ASSERT_TACC(taccBarrier(comm, nullptr));
    ASSERT_TACC(taccMemFree(memory));
  });
}

TEST(EndToEnd, LibraryMemoryIsReservedAndUnshared) {
  int other = 0;
  EXPECT_EQ(taccMemUnshare(nullptr), taccInvalidArgument);
  EXPECT_EQ(taccMemUnshare(&other), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("is not the start of library memory"));
  constexpr std::size_t bytes = std::size_t{1} << 30;
  void* pointer = nullptr;
  ASSERT_TACC(taccMemReserve(&pointer, bytes));
  char& last = static_cast<char*>(pointer)[bytes - 1];
  EXPECT_EQ(last, 0);
  last = 3;
  EXPECT_TACC(taccMemUnshare(pointer));
  EXPECT_TACC(taccMemUnshare(pointer));
  EXPECT_EQ(last, 3);
  EXPECT_TACC(taccMemFree(pointer));
  EXPECT_EQ(taccMemUnshare(pointer), taccInvalidArgument);
}

TEST(EndToEnd, AbortEndsABlockedCallOfTheSameProcess) {
  World world(2);
  std::atomic<bool> entered = false;
  taccResult_t result = taccSuccess;
  std::string message;
  std::thread blocked([&] {
    std::vector<float> values(100);
    entered = true;
    result = taccAllReduce(values.data(), values.data(), 100, taccFloat, taccSum, world.comms[0], nullptr);
    message = taccGetLastError(nullptr);
  });
  while (!entered) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TACC(taccCommAbort(world.comms[0]));
  blocked.join();
  EXPECT_EQ(result, taccRemoteError) << message;
  EXPECT_THAT(message, HasSubstr("taccCommAbort was called on rank 0"));
  world.comms[0] = nullptr;
  // The other rank learns of it.
  float value = 0;
  EXPECT_EQ(taccAllReduce(&value, &value, 1, taccFloat, taccSum, world.comms[1], nullptr), taccRemoteError);
  taccResult_t async = taccSuccess;
  EXPECT_TACC(taccCommGetAsyncError(world.comms[1], &async));
  EXPECT_EQ(async, taccRemoteError);
}

TEST(EndToEnd, AbortEndsTheWorkOfAStream) {
  World world(2);
  taccStream_t stream = nullptr;
  ASSERT_TACC(taccStreamCreate(&stream));
  float value = 0;
  ASSERT_TACC(taccAllReduce(&value, &value, 1, taccFloat, taccSum, world.comms[1], stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(taccStreamQuery(stream), taccInProgress);
  EXPECT_TACC(taccCommAbort(world.comms[1]));
  world.comms[1] = nullptr;
  EXPECT_EQ(taccStreamSynchronize(stream), taccRemoteError);
  EXPECT_TACC(taccStreamDestroy(stream));
}

/// A reduction of the program that aborts the communicator that it is called for, as a signal's handler might.
void abortInside(void* /*accumulated*/, const void* /*next*/, std::size_t /*count*/, taccDataType_t /*type*/,
                 void* context) {
  auto& comm = *static_cast<taccComm_t*>(context);
  if (comm == nullptr) return;
  float value = 0;
  EXPECT_EQ(taccAllReduce(&value, &value, 1, taccFloat, taccSum, comm, nullptr), taccInvalidUsage);
  EXPECT_EQ(taccCommDestroy(comm), taccInvalidUsage);
  EXPECT_TACC(taccCommAbort(comm));
  EXPECT_EQ(taccCommAbort(comm), taccInvalidUsage) << "it is aborted";
  comm = nullptr;
}

/// Whoever aborts it inside its own call cannot wait until that has ended; the call frees it, and others' streams and
/// groups go on.
TEST(EndToEnd, AbortInsideTheCallsOwnThreadReturns) {
  enum { inCall, inStream, inGroup, inGroupsOtherThread, kinds };
  for (int kind = 0; kind < kinds; ++kind) {
    SCOPED_TRACE(kind);
    World world(2), other(2);
    std::vector<taccComm_t> aborted = world.comms;
    world.inThreads([&](int rank, taccComm_t comm) {
      const auto r = static_cast<std::size_t>(rank);
      taccRedOp_t op = taccSum;
      taccStream_t stream = nullptr;
      ASSERT_TACC(taccRedOpCreateUser(&op, abortInside, &aborted[r], 1, comm));
      ASSERT_TACC(taccStreamCreate(&stream));
      std::vector<float> values(1000), others(1000, 1.0F);
      const bool isGroup = kind == inGroup || kind == inGroupsOtherThread;
      if (isGroup) {
        ASSERT_TACC(taccGroupStart());
      }
      // The calls of a group on different communicators run in different threads.
      const auto callOther = [&] {
        EXPECT_TACC(taccAllReduce(others.data(), others.data(), 1000, taccFloat, taccSum, other.comms[r], nullptr));
      };
      if (kind == inGroupsOtherThread) callOther();
      (void)taccAllReduce(values.data(), values.data(), 1000, taccFloat, op, comm, kind == inStream ? stream : nullptr);
      if (kind == inGroup) callOther();
      if (isGroup) (void)taccGroupEnd();
      (void)taccStreamSynchronize(stream);
      EXPECT_TACC(taccStreamDestroy(stream));
      if (isGroup) {
        EXPECT_EQ(others[999], 2.0F);
      }
      // Of two ranks one may do the whole reduction; its end is then the other's error.
      if (aborted[r] == nullptr) {
        EXPECT_EQ(taccBarrier(comm, nullptr), taccInvalidUsage) << "the handle is that of an aborted one";
        world.comms[r] = nullptr;
      }
    });
    EXPECT_TRUE(aborted[0] == nullptr || aborted[1] == nullptr);
  }
}

/// Of two, which joins, calls and leaves: runs where stacks are small, so it expects nothing itself.
struct SmallRank {
  static void* run(void* argument) {
    auto& self = *static_cast<SmallRank*>(argument);
    self.result = self.play();
    return nullptr;
  }
  taccResult_t play() {
    taccComm_t comm = nullptr, part = nullptr;
    if (const taccResult_t joined = taccCommInitRank(&comm, 2, id, rank); joined != taccSuccess) return joined;
    value = static_cast<float>(rank + 1);
    const taccResult_t called = taccAllReduce(&value, &value, 1, taccFloat, taccSum, comm, nullptr);
    const taccResult_t divided = taccCommSplit(comm, 0, rank, &part, nullptr);
    if (divided == taccSuccess) (void)taccCommDestroy(part);
    const taccResult_t left = taccCommDestroy(comm);
    return called != taccSuccess ? called : divided != taccSuccess ? divided : left;
  }

  taccUniqueId id;
  int rank;
  taccResult_t result = taccInternalError;
  float value = 0;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t smallStack = std::size_t{128} << 10;  // their frames are larger
#else
constexpr std::size_t smallStack = std::size_t{24} << 10;
#endif

/// A fiber's stack, which the thread knows nothing of.
void runInFiber(SmallRank& rank) {
  static thread_local SmallRank* current = nullptr;
  current = &rank;
  std::vector<std::byte> stack(smallStack);
  ucontext_t back, fiber;
  ASSERT_EQ(::getcontext(&fiber), 0);
  fiber.uc_stack.ss_sp = stack.data();
  fiber.uc_stack.ss_size = stack.size();
  fiber.uc_link = &back;
  ::makecontext(
      &fiber, +[] { (void)SmallRank::run(current); }, 0);
  ASSERT_EQ(::swapcontext(&back, &fiber), 0);
}

TEST(EndToEnd, RanksJoinOnSmallStacks) {
  for (const bool isFiber : {false, true}) {
    SCOPED_TRACE(isFiber);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (isFiber) break;  // they know no fibers
#endif
    taccUniqueId id;
    ASSERT_TACC(taccGetUniqueId(&id));
    SmallRank ranks[2] = {{.id = id, .rank = 0}, {.id = id, .rank = 1}};
    if (isFiber) {
      std::thread other([&] { runInFiber(ranks[1]); });
      runInFiber(ranks[0]);
      other.join();
    } else {
      pthread_t threads[2];
      pthread_attr_t attributes;
      ASSERT_EQ(::pthread_attr_init(&attributes), 0);
      ASSERT_EQ(::pthread_attr_setstacksize(&attributes, smallStack), 0);
      for (int rank = 0; rank < 2; ++rank)
        ASSERT_EQ(::pthread_create(&threads[rank], &attributes, SmallRank::run, &ranks[rank]), 0);
      for (pthread_t const thread : threads) ::pthread_join(thread, nullptr);
      ::pthread_attr_destroy(&attributes);
    }
    for (const SmallRank& rank : ranks) {
      EXPECT_EQ(rank.result, taccSuccess);
      EXPECT_EQ(rank.value, 3.0F);
    }
  }
}

TEST(EndToEnd, DifferentCallsAreAnErrorThatNamesBoth) {
  World world(2);
  world.inThreads([&](int rank, taccComm_t comm) {
    float values[8] = {};
    const taccResult_t result = taccAllReduce(values, values, rank == 0 ? 4 : 8, taccFloat, taccSum, comm, nullptr);
    EXPECT_TRUE(result == taccInvalidUsage || result == taccRemoteError) << result;
    EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("taccAllReduce on rank"));
  });
}

}  // namespace
