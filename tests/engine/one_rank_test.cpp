// What one of 16,384 ranks needs to make its part of a plan and to lower it: little memory, whatever the plan.
#include <gtest/gtest.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "algorithms/registry.hpp"
#include "engine/network_program.hpp"

namespace {
std::size_t liveBytes = 0, mostBytes = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  liveBytes += malloc_usable_size(memory);
  mostBytes = std::max(mostBytes, liveBytes);
  return memory;
}
void operator delete(void* memory) noexcept {
  liveBytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace tacc {
namespace {

struct Need {
  std::size_t bytes = 0;  // at the worst moment
  double milliseconds = 0;
};

/// Of this thread, so that others on the machine do not count.
double processorMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Need measure(const Algorithm& algorithm, const PlanRequest& request, int rank) {
  const std::size_t before = mostBytes = liveBytes;
  const double begin = processorMilliseconds();
  const NetworkProgram program = lowerForNetwork(makeLocalPlan(algorithm, request, rank), true);
  const double passed = processorMilliseconds() - begin;
  EXPECT_GT(program.steps.size(), 0U);
  return {mostBytes - before, passed};
}

std::vector<PlanRequest> requestsOf(const Algorithm& algorithm, int p) {
  std::vector<PlanRequest> layouts(1);
  if (algorithm.looksAtLayout) {
    for (const std::vector<int>& levels : {std::vector{8}, std::vector{8, 32}, std::vector{16, 16, 4}}) {
      layouts.emplace_back();
      if (p % 1024 == 0) {
        layouts.back().groups = equalGroups(p, levels);
        continue;
      }
      // Unequal ones: the last group of each level has what is left.
      int size = 1;
      for (const int level : levels) {
        size *= level;
        std::vector<int> sizes;
        for (int left = p; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, size));
        layouts.back().groups.push_back(sizes);
      }
    }
  }
  std::vector<PlanRequest> requests;
  for (PlanRequest& request : layouts) {
    for (int c = 0; c < collectiveCount; ++c) {
      request.collective = static_cast<Collective>(c);
      request.ranks = p;
      for (const int root : {0, p / 3}) {
        request.root = root;
        if ((root == 0 || isRooted(request.collective)) && algorithm.serves(request)) requests.push_back(request);
      }
    }
  }
  return requests;
}

class OneRankOfMany : public testing::TestWithParam<const Algorithm*> {};

TEST_P(OneRankOfMany, NeedsLittle) {
  for (const int p : {16384, 16000}) {
    for (const PlanRequest& request : requestsOf(*GetParam(), p)) {
      Need worst;
      for (const int rank : {0, 1, p / 3, p - 1}) {
        const Need need = measure(*GetParam(), request, rank);
        worst.bytes = std::max(worst.bytes, need.bytes);
        worst.milliseconds = std::max(worst.milliseconds, need.milliseconds);
      }
      std::printf("%s %s p=%d root=%d levels=%zu: %.2f MiB, %.1f ms\n", std::string(GetParam()->name).c_str(),
                  std::string(nameOf(request.collective)).c_str(), p, request.root, request.groups.size(),
                  static_cast<double>(worst.bytes) / 1048576, worst.milliseconds);
      EXPECT_LE(worst.bytes, 4U << 20) << GetParam()->name << " " << nameOf(request.collective) << " p=" << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OneRankOfMany, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& suite) { return std::string(suite.param->name); });

}  // namespace
}  // namespace tacc
