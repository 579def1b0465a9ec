#include "core/per_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tacc {
namespace {

std::atomic<int> living{0};

struct Counted {
  Counted() { ++living; }
  ~Counted() { --living; }
  int value = 0;
};

TEST(PerThread, isOneForEachThreadAndEndsWithIt) {
  static PerThread<Counted> counted;
  EXPECT_EQ(counted.find(), nullptr);
  counted.get().value = 7;
  std::atomic<int> here{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(counted.find(), nullptr);
      Counted& own = counted.get();
      EXPECT_EQ(own.value, 0);
      own.value = i;
      ++here;
      while (here < 5) std::this_thread::yield();
      EXPECT_EQ(living, 6);
      EXPECT_EQ(&counted.get(), &own);
      EXPECT_EQ(counted.find()->value, i);
      ++here;
      while (here < 10) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(living, 1);
  EXPECT_EQ(counted.get().value, 7);
}

struct Greedy {
  Greedy() { throw std::bad_alloc(); }
};

TEST(PerThread, throwsWhereThereIsNoMemory) {
  static PerThread<Greedy> greedy;
  EXPECT_THROW(greedy.get(), std::bad_alloc);
  EXPECT_EQ(greedy.find(), nullptr);
}

}  // namespace
}  // namespace tacc
