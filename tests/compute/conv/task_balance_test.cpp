// How work is cut into tasks for workers: drawn work, played through with the parts that really come of it.
#include "compute/conv/task_balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "compute/conv/task_partition.hpp"

namespace tacc::conv {
namespace {

/// What every task of a cut computes, in the order of their numbers.
std::vector<std::size_t> tasksOf(const DivisibleWork& work, const TaskCut& cut) {
  std::vector<std::size_t> tasks;
  for (std::size_t piece = 0; piece < work.pieces; ++piece) {
    for (std::size_t column = 0; column < cut.columnParts; ++column) {
      for (std::size_t row = 0; row < cut.rowParts; ++row) {
        const TaskPart rows = partOf(work.rows, cut.rowParts, row);
        const TaskPart columns = partOf(work.columns, cut.columnParts, column);
        tasks.push_back((rows.to - rows.from) * (columns.to - columns.from));
      }
    }
  }
  return tasks;
}

/// When the last of `workers` ends: each begins with an equal share of the tasks, then takes those of others.
std::size_t endOf(const std::vector<std::size_t>& tasks, std::size_t workers) {
  std::vector<std::deque<std::size_t>> shares(workers);
  for (std::size_t i = 0; i < workers; ++i) {
    const TaskPart part = partOf(tasks.size(), workers, i);
    shares[i].assign(tasks.begin() + static_cast<std::ptrdiff_t>(part.from),
                     tasks.begin() + static_cast<std::ptrdiff_t>(part.to));
  }
  std::vector<std::size_t> busyUntil(workers, 0);
  for (std::size_t left = tasks.size(); left > 0; --left) {
    const auto worker =
        static_cast<std::size_t>(std::min_element(busyUntil.begin(), busyUntil.end()) - busyUntil.begin());
    std::size_t share = worker;
    while (shares[share].empty()) share = (share + 1) % workers;
    busyUntil[worker] += shares[share].front();
    shares[share].pop_front();
  }
  return *std::max_element(busyUntil.begin(), busyUntil.end());
}

DivisibleWork drawWork(std::mt19937& random) {
  const auto draw = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(
        1, std::uniform_int_distribution<std::size_t>(1, most)(random))(random);
  };
  DivisibleWork work{draw(32), draw(300), draw(40)};
  work.leastRowParts = std::min(work.rows, draw(10));
  return work;
}

TEST(TaskBalance, CutsNoMoreThanThereIs) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const DivisibleWork work = drawWork(random);
    const std::size_t workers = 1 + random() % 40;
    const TaskCut cut = balancedCut(work, workers);
    EXPECT_GE(cut.rowParts, work.leastRowParts);
    EXPECT_LE(cut.rowParts, work.rows);
    EXPECT_GE(cut.columnParts, 1U);
    EXPECT_LE(cut.columnParts, work.columns);
    if (workers == 1) {
      EXPECT_EQ(cut.rowParts, work.leastRowParts);
      EXPECT_EQ(cut.columnParts, 1U);
    }
  }
}

/// With `leastRowParts` of 1, no row and column is larger than any cut can be; more workers than that stay idle.
TEST(TaskBalance, WorkersEndAboutTogether) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const DivisibleWork work = drawWork(random);
    const std::size_t workers = 2 + random() % 15;
    const std::size_t all = work.pieces * work.rows * work.columns;
    if (all < 8 * workers) continue;
    const std::vector<std::size_t> tasks = tasksOf(work, balancedCut(work, workers));
    EXPECT_LE(endOf(tasks, workers), 1.26 * double(all) / double(workers) + 1)
        << work.pieces << " pieces, " << work.rows << " rows from " << work.leastRowParts << " parts on, "
        << work.columns << " columns, " << workers << " workers";
  }
}

/// No cut makes what the busiest worker has larger than what is promised of it.
TEST(TaskBalance, ForeseesWhenTheLastEnds) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const DivisibleWork work = drawWork(random);
    const std::size_t workers = 1 + random() % 16;
    const TaskCut cut{1 + random() % work.rows, 1 + random() % work.columns};
    const double share = double(work.pieces * work.rows * work.columns) / double(workers);
    EXPECT_LE(double(endOf(tasksOf(work, cut), workers)), spanOf(work, cut, workers) * share * (1 + 1e-9));
  }
}

TEST(TaskBalance, FiveGroupsOfOutputsByTwoWorkers) {
  // 160 channels, two blocks at once, and 49 pixels in tiles of 13: cut by outputs alone one worker has 3 of 5.
  const DivisibleWork work{1, 4, 5};
  EXPECT_DOUBLE_EQ(spanOf(work, {1, 5}, 2), 1.2);
  EXPECT_DOUBLE_EQ(spanOf(work, balancedCut(work, 2), 2), 1.0);
}

}  // namespace
}  // namespace tacc::conv
