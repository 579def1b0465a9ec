#include "core/loose_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tacc {
namespace {

TEST(LooseQueue, HoldsWhatAVectorWould) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    LooseQueue<int> queue;
    std::vector<int> expected;
    const unsigned removals = random() % 4;  // 0: it only grows
    for (int i = 0; i < 500; ++i) {
      if (expected.empty() || random() % 4 >= removals) {
        queue.push(i);
        expected.push_back(i);
      } else if (random() % 50 == 0) {
        const auto isOdd = [](int value) { return value % 2 != 0; };
        queue.eraseIf(isOdd);
        std::erase_if(expected, isOdd);
      } else {
        const std::size_t near = std::min<std::size_t>(expected.size() - 1, random() % 8);
        queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(near));
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(near));
      }
      ASSERT_EQ(std::vector<int>(queue.begin(), queue.end()), expected);
      ASSERT_EQ(queue.empty(), expected.empty());
    }
  }
}

}  // namespace
}  // namespace tacc
