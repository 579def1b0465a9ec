// The memory of a center among threads that share it, and its locks when holders die, stop or take long. Run under
// ThreadSanitizer too: all threads use one mapping.
#include "easgd/center_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "easgd/mapped_center.hpp"
#include "support/child_process.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::Signal;
using testing::HasSubstr;

constexpr double patience = 60;
constexpr std::size_t twoShards = CenterMemory::shardElements + 5;

std::shared_ptr<CenterMemory> make(std::size_t count, bool isLocked, const float* initial = nullptr) {
  return std::make_shared<CenterMemory>(CenterMemory::create({count, isLocked ? 1U : 0U}, initial));
}

/// A child's own mapping: a child does not inherit its parent's.
std::shared_ptr<CenterMemory> mapAgain(int fd, const CenterMemory::Shape& shape) {
  return std::make_shared<CenterMemory>(CenterMemory::map(duplicate(fd), shape));
}

MappedCenter worker(const std::shared_ptr<CenterMemory>& memory, std::uint32_t number, double timeout = patience) {
  return {memory, number, timeout, [] {}, nullptr};
}

/// What the calls of one worker leave: x + c is the same before and after.
void exchangeOften(const std::shared_ptr<CenterMemory>& memory, std::uint32_t number, int times,
                   std::vector<float>& weights) {
  MappedCenter center = worker(memory, number);
  for (int i = 0; i < times; ++i)
    center.exchange(weights.data(), 0.5f, [&](std::size_t first, std::size_t n, const float* difference) {
      for (std::size_t k = 0; k < n; ++k) weights[first + k] -= difference[k];
    });
}

TEST(CenterMemory, NoUpdateIsLostAmongThreads) {
  // Multiples of 2^-40 would be needed for halves of halves; with alpha = 1 weights and center change places, exactly.
  constexpr int threads = 4, times = 100;
  const auto memory = make(twoShards, true);
  std::vector<std::vector<float>> weights;
  for (int t = 0; t < threads; ++t) weights.emplace_back(twoShards, static_cast<float>(1 << t));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      MappedCenter center = worker(memory, static_cast<std::uint32_t>(t));
      std::vector<float>& own = weights[static_cast<std::size_t>(t)];
      for (int i = 0; i < times; ++i)
        center.exchange(own.data(), 1.0f, [&](std::size_t first, std::size_t n, const float* difference) {
          for (std::size_t k = 0; k < n; ++k) own[first + k] -= difference[k];
        });
    });
  for (std::thread& thread : running) thread.join();
  std::vector<float> center(twoShards);
  worker(memory, 0).read(center.data());
  for (std::size_t i = 0; i < twoShards; ++i) {
    float sum = center[i];
    for (const auto& own : weights) sum += own[i];
    ASSERT_EQ(sum, static_cast<float>((1 << threads) - 1)) << i;
  }
  EXPECT_EQ(memory->updates(), static_cast<std::uint64_t>(threads * times));
}

TEST(CenterMemory, HogwildElementsAreAlwaysWhole) {
  // Threads write and move between numbers whose bits have nothing in common; a torn one would be neither.
  constexpr int threads = 3, times = 200;
  const auto memory = make(twoShards, false);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      MappedCenter center = worker(memory, static_cast<std::uint32_t>(t));
      const std::vector<float> own(twoShards, t % 2 == 0 ? 1.0f : 0.0f);
      std::vector<float> seen(twoShards);
      for (int i = 0; i < times; ++i) {
        center.exchange(own.data(), 0.25f, [](std::size_t, std::size_t, const float*) {});
        center.read(seen.data());
        for (const float value : seen) ASSERT_TRUE(value >= 0.0f && value <= 1.0f) << value;
      }
    });
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(memory->updates(), static_cast<std::uint64_t>(threads * times));
}

TEST(CenterMemory, TheLockOfADeadHolderGoesToTheNext) {
  const auto memory = make(twoShards, true);
  const int fd = duplicate(memory->fd()).release();
  shareWithChildren(fd);
  const Signal locked;
  ChildProcess holder([&] {
    const auto own = mapAgain(fd, memory->shape());
    if (own->lockOf(0).tryLock(own->self()) == ShardLock::Taken::no) return false;
    locked.give();
    ::pause();
    return false;
  });
  locked.await();
  float difference[1];
  const float weight = 8;
  EXPECT_FALSE(memory->tryAccess(0, 1, CenterMemory::Move{&weight, 0.5f, difference}));
  EXPECT_TRUE(memory->tryAccess(CenterMemory::shardElements, 1, CenterMemory::Move{&weight, 0.5f, difference}));
  holder.kill();
  std::vector<float> weights(twoShards, 2.0f);
  exchangeOften(memory, 0, 1, weights);
  EXPECT_EQ(weights[0], 1.0f);
  EXPECT_EQ(memory->inherited(), 1u);
  exchangeOften(memory, 0, 1, weights);
  EXPECT_EQ(memory->inherited(), 1u);
  closeNow(fd);
}

TEST(CenterMemory, AStoppedHolderIsNamedAndTheOthersGoOnAfterwards) {
  const auto memory = make(10, true);
  const int fd = duplicate(memory->fd()).release();
  shareWithChildren(fd);
  const Signal locked, release;
  ChildProcess holder([&] {
    const auto own = mapAgain(fd, memory->shape());
    if (own->lockOf(0).tryLock(own->self()) == ShardLock::Taken::no) return false;
    locked.give();
    release.await();
    own->lockOf(0).unlock();
    return true;
  });
  locked.await();
  holder.kill(SIGSTOP);
  int status = 0;
  ::waitpid(holder.pid(), &status, WUNTRACED);
  MappedCenter center = worker(memory, 0, 0.2);
  std::vector<float> weights(10, 4.0f);
  int calls = 0;
  const auto sink = [&](std::size_t, std::size_t, const float*) { ++calls; };
  try {
    center.exchange(weights.data(), 0.5f, sink);
    ADD_FAILURE() << "the lock was not held";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccTimeout);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("process {}, stopped (SIGSTOP)", holder.pid())));
    EXPECT_THAT(error.what(), HasSubstr("the elements 0 to 9"));
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(center.lastUpdate(), 0u);
  holder.kill(SIGCONT);
  release.give();
  EXPECT_EQ(holder.wait(), 0);
  center.exchange(weights.data(), 0.5f, sink);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(center.lastUpdate(), 1u);
  closeNow(fd);
}

TEST(CenterMemory, WhatEndsAWaitIsAskedForWhileItLasts) {
  const auto memory = make(10, true);
  ASSERT_NE(memory->lockOf(0).tryLock(1), ShardLock::Taken::no);
  std::thread other([&] {
    int looks = 0;
    MappedCenter center(
        memory, 0, 0,
        [&] {
          if (++looks == 3) fail(taccRemoteError, "it has ended");
        },
        nullptr);
    float number[10];
    try {
      center.read(number);
      ADD_FAILURE() << "it was not locked";
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccRemoteError);
    }
  });
  other.join();
  memory->lockOf(0).unlock();
}

TEST(CenterMemory, EveryElementIsGivenOnceInRangesThatFitACache) {
  for (const std::size_t count : {std::size_t{1}, CenterMemory::shardElements, twoShards, 7 * twoShards}) {
    for (const bool isLocked : {true, false}) {
      std::vector<float> initial(count);
      for (std::size_t i = 0; i < count; ++i) initial[i] = static_cast<float>(i % 1000);
      const auto memory = make(count, isLocked, initial.data());
      MappedCenter center = worker(memory, 3);
      std::vector<float> weights(count, 1000.0f);
      std::vector<int> given(count);
      center.exchange(weights.data(), 0.5f, [&](std::size_t first, std::size_t n, const float* difference) {
        EXPECT_LE(n * sizeof(float), std::size_t{64} << 10);
        for (std::size_t k = 0; k < n; ++k) {
          ++given[first + k];
          ASSERT_EQ(difference[k], 0.5f * (1000.0f - initial[first + k]));
        }
      });
      EXPECT_THAT(given, testing::Each(1));
      std::vector<float> now(count);
      center.read(now.data());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(now[i], 500.0f + 0.5f * initial[i]);
      center.write(weights.data());
      center.read(now.data());
      EXPECT_EQ(now, weights);
      EXPECT_EQ(center.counts().bytes, 5 * count * sizeof(float));
    }
  }
}

TEST(CenterMemory, AnotherShapeIsRefused) {
  const auto memory = make(100, true);
  for (const CenterMemory::Shape& shape : {CenterMemory::Shape{99, 1}, CenterMemory::Shape{100, 0}})
    EXPECT_THROW(CenterMemory::map(duplicate(memory->fd()), shape), Error);
  EXPECT_THROW(CenterMemory::map(duplicate(memory->fd()), {1000000, 1}), Error);
  EXPECT_THROW(CenterMemory::create({std::size_t{1} << 62, 1}, nullptr), Error);
}

}  // namespace
}  // namespace tacc
