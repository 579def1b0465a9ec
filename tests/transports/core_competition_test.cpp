// Whether a process notices that another program wants its core, and what a waiting rank does then.
#include "transports/shm/core_competition.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "transports/shm/shared_memory.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;

/// The calling thread on one core alone, the one that it is on.
void stayHere() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

/// A thread of a program that wants the core of the thread that makes it, until it is ended.
class Competitor {
 public:
  Competitor()
      : thread_([this] {
          while (!ends_.load(std::memory_order_relaxed)) {
          }
        }) {}
  ~Competitor() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ends_{false};
  std::thread thread_;  // on the same core: a thread has the affinity of its maker
};

TEST(CoreCompetition, IsNotSeenBeforeAYieldWasLong) {
  const CoreCompetition competition;
  EXPECT_FALSE(competition.wasSeen());
  EXPECT_FALSE(competition.isSteady());
}

TEST(CoreCompetition, IsSeenWhereAnotherProgramWantsTheCoreAndForgottenInTime) {
  CoreCompetition competition;
  std::thread([&] {
    stayHere();
    {
      const Competitor other;
      const auto start = Clock::now();
      bool wasLong = false;
      while (!wasLong && Clock::now() - start < std::chrono::seconds(20)) wasLong = competition.yield();
      EXPECT_TRUE(wasLong) << "no yield lasted, though another thread wants this core all the time";
      EXPECT_TRUE(competition.wasSeen());
      while (!competition.isSteady() && Clock::now() - start < std::chrono::seconds(20)) competition.yield();
      EXPECT_TRUE(competition.isSteady()) << "yields do not go on to last";
    }
    const auto start = Clock::now();
    while (competition.wasSeen() && Clock::now() - start < std::chrono::seconds(60)) std::this_thread::yield();
    EXPECT_FALSE(competition.wasSeen());
    EXPECT_FALSE(competition.isSteady());
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(500)) << "it was forgotten at once";
  }).join();
}

TEST(CoreCompetition, IsNotSteadyWhereWhatCameInTheMeantimeKeepsTheRankBusy) {
  CoreCompetition competition;
  std::thread([&] {
    stayHere();
    const Competitor other;
    const auto start = Clock::now();
    for (int slices = 0; slices < 20 && Clock::now() - start < std::chrono::seconds(20);) {
      const auto before = Clock::now();
      competition.yield();
      const auto slice = Clock::now() - before;
      if (slice < std::chrono::milliseconds(1)) continue;
      ++slices;
      ASSERT_FALSE(competition.isSteady()) << "after " << slices << " slices";
      for (const auto work = Clock::now(); Clock::now() - work < slice;) {
      }
    }
  }).join();
}

/// The least seconds of some tries in which a rank that waits for another one's message looks ten times.
double leastOfTenLooks(Waiter& waiter) {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    while (!coreCompetition().wasSeen()) coreCompetition().yield();
    const auto start = Clock::now();
    for (int attempt = 1; attempt <= 10; ++attempt) waiter.pauseForRing(attempt, waiter.rings(), 1);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

TEST(CoreCompetition, WhoWaitsForAMessageOfItsHostKeepsTheCoreOverSeveralHostsToo) {
  constexpr NodeGeometry geometry{
      .ranks = 2, .eagerBytes = 4096, .arenaBytes = 4096, .pairBytes = 4096, .hasMessages = false};
  const SharedMemory memory = SharedMemory::create(NodeSegment::bytesFor(geometry), "waiter", Reserve::onTouch);
  WaitPolicy policy;
  policy.spins = 0;
  Waiter waiter(NodeSegment(memory.data(), geometry), 0, {1, 2}, nullptr, policy, 0, [] { return std::string(); });
  int works = 0;
  waiter.setIdleWork([&] { ++works; });
  std::thread([&] {
    stayHere();
    const Competitor other;
    EXPECT_LT(leastOfTenLooks(waiter), CoreCompetition::sliceSeconds) << "another program had the core between looks";
  }).join();
  EXPECT_GT(works, 0) << "messages to other hosts wait meanwhile";
}

TEST(WaitPolicy, SpinsAmongOtherProgramsUnlessTheSpinsAreGiven) {
  EXPECT_GT(chooseWaitPolicy(2, 2, std::nullopt).competingSpinSeconds, 0);
  EXPECT_EQ(chooseWaitPolicy(2, 2, 0).competingSpinSeconds, 0) << "TACC_SPIN=0 asks for no spinning";
  EXPECT_EQ(chooseWaitPolicy(2, 2, 1000).competingSpinSeconds, 0);
  EXPECT_TRUE(chooseWaitPolicy(3, 2, std::nullopt).oversubscribed);
  EXPECT_FALSE(chooseWaitPolicy(2, 2, std::nullopt).sleepsAmongOthers);
  EXPECT_TRUE(chooseWaitPolicy(8, 2, std::nullopt).sleepsAmongOthers);
  EXPECT_FALSE(chooseWaitPolicy(64, 2, std::nullopt).sleepsAmongOthers) << "ranks alone make yields long";
}

}  // namespace
}  // namespace tacc
