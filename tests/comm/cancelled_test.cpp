// A thread that is cancelled while it is inside a call ends when the call has ended, and the communicator goes on.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "fault_team.hpp"

namespace tacc::test {
namespace {

constexpr double patience = 20;

/// What a rank has; two ranks make one call, the first of them in a thread.
struct Things {
  taccUniqueId id;
  int rank = 0;
  taccComm_t comm = nullptr;
  taccComm_t other = nullptr;  // of the same ranks
  taccComm_t made = nullptr;
  taccStream_t stream = nullptr;
  taccRedOp_t add = taccSum;
  float values[2] = {1, 1};
};

taccResult_t allReduce(Things& has, taccComm_t comm, taccStream_t stream = nullptr) {
  return taccAllReduce(has.values, has.values + 1, 1, taccFloat, taccSum, comm, stream);
}

/// A point of cancellation, as functions of programs have them.
void rest(void*) { ::usleep(1); }

void addAtLeisure(void* sum, const void* next, size_t count, taccDataType_t, void*) {
  rest(nullptr);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(sum)[i] += static_cast<const float*>(next)[i];
}

struct Waiting {
  const char* name;
  taccResult_t (*call)(Things& has);
};

const Waiting waitings[] = {
    {"allReduce", [](Things& has) { return allReduce(has, has.comm); }},
    {"exchange",
     [](Things& has) {
       return has.rank == 0 ? taccRecv(has.values, 1, taccFloat, 1, has.comm, nullptr)
                            : taccSend(has.values, 1, taccFloat, 0, has.comm, nullptr);
     }},
    {"join",
     [](Things& has) {
       const taccConfig_t config = configOf(patience, patience);
       return taccCommInitRankConfig(&has.made, 2, has.id, has.rank, &config);
     }},
    {"split", [](Things& has) { return taccCommSplit(has.comm, 0, has.rank, &has.made, nullptr); }},
    {"stream",
     [](Things& has) {
       const taccResult_t given = allReduce(has, has.comm, has.stream);
       return given != taccSuccess ? given : taccStreamSynchronize(has.stream);
     }},
    {"behindStream",
     [](Things& has) {
       const taccResult_t given = allReduce(has, has.comm, has.stream);
       return given != taccSuccess ? given : allReduce(has, has.comm);
     }},
    {"group",
     [](Things& has) {
       (void)taccGroupStart();
       (void)allReduce(has, has.comm);
       (void)allReduce(has, has.other);
       return taccGroupEnd();
     }},
    {"groupBehindStream",
     [](Things& has) {
       (void)allReduce(has, has.comm, has.stream);
       (void)taccGroupStart();
       (void)allReduce(has, has.comm);
       return taccGroupEnd();
     }},
    {"ownReduction",
     [](Things& has) { return taccAllReduce(has.values, has.values + 1, 1, taccFloat, has.add, has.comm, nullptr); }},
    {"newMemory",  // which ranks hand to each other in the call
     [](Things& has) {
       constexpr size_t count = size_t{1} << 18;
       void* memory = nullptr;
       const taccResult_t made = taccMemAlloc(&memory, count * sizeof(float));
       if (made != taccSuccess) return made;
       const taccResult_t result = taccAllReduce(memory, memory, count, taccFloat, taccSum, has.comm, nullptr);
       (void)taccMemFree(memory);
       return result;
     }},
    {"madeGroup",
     [](Things& has) {
       const int everybody[] = {1, 0};
       return taccCommCreateGroup(has.comm, everybody, 2, &has.made, nullptr);
     }},
    {"groupedSplits",
     [](Things& has) {
       (void)taccGroupStart();
       (void)taccCommSplit(has.comm, 0, has.rank, &has.made, nullptr);
       return taccGroupEnd();
     }},
};

struct Cancelled {
  const Waiting* waiting;
  Things* has;
  taccResult_t result = taccInternalError;

  static void* run(void* self) {
    auto& cancelled = *static_cast<Cancelled*>(self);
    cancelled.result = cancelled.waiting->call(*cancelled.has);
    ::pthread_testcancel();
    return nullptr;
  }
};

class CancelledThread : public testing::TestWithParam<std::string> {};

TEST_P(CancelledThread, endsWhenItsCallHasEnded) {
  const bool isAmongHosts = GetParam() == "messages", isIdle = GetParam() == "idle";
  std::mt19937 draw(20261130);
  for (const Waiting& waiting : waitings) {
    taccUniqueId joined;
    const bool isJoin = std::string(waiting.name) == "join";
    if (isJoin) {
      ASSERT_EQ(taccGetUniqueId(&joined), taccSuccess);
    }
    const std::chrono::milliseconds moment(draw() % 60);
    Team team(2, [&](const taccUniqueId& id, int rank, Report& report) {
      if (isAmongHosts) {
        ::setenv("TACC_SHM", "off", 1);
        ::setenv("TACC_TRANSPORT", "tcp", 1);
      }
      const Report& first = *(&report - rank);
      Things has;
      has.id = joined;
      has.rank = rank;
      taccConfig_t config = configOf(patience, patience);
      if (isIdle) config.idle = rest;
      has.comm = joinTeam(id, 2, rank, config);
      ASSERT_NE(has.comm, nullptr);
      ASSERT_EQ(taccRedOpCreateUser(&has.add, addAtLeisure, nullptr, 1, has.comm), taccSuccess);
      ASSERT_EQ(taccCommSplit(has.comm, 0, rank, &has.other, nullptr), taccSuccess);
      ASSERT_EQ(taccStreamCreate(&has.stream), taccSuccess);
      if (rank == 0) {
        Cancelled cancelled{&waiting, &has};
        pthread_t thread{};
        ASSERT_EQ(::pthread_create(&thread, nullptr, Cancelled::run, &cancelled), 0);
        std::this_thread::sleep_for(moment);
        EXPECT_EQ(::pthread_cancel(thread), 0);
        report.stage = 1;
        void* end = nullptr;
        EXPECT_EQ(::pthread_join(thread, &end), 0);
        EXPECT_EQ(end, PTHREAD_CANCELED) << waiting.name;
        EXPECT_EQ(cancelled.result, taccSuccess) << waiting.name << ": " << taccGetLastError(has.comm);
      } else {
        while (first.stage < 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
        EXPECT_EQ(waiting.call(has), taccSuccess) << waiting.name << ": " << taccGetLastError(has.comm);
      }
      if (isJoin) {
        ASSERT_NE(has.made, nullptr);
      }
      for (taccComm_t const comm : {has.comm, has.other, has.made}) {
        if (comm == nullptr) continue;
        EXPECT_EQ(allReduce(has, comm), taccSuccess) << waiting.name << ": " << taccGetLastError(comm);
        EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
      }
      EXPECT_EQ(taccStreamDestroy(has.stream), taccSuccess);
    });
    team.join(-1, 2 * patience);
    if (HasFailure()) FAIL() << waiting.name << ", cancelled after " << moment.count() << " ms";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CancelledThread, testing::Values("memory", "messages", "idle"),
                         [](const auto& suite) { return suite.param; });

}  // namespace
}  // namespace tacc::test
