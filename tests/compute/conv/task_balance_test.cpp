// How work is cut into tasks for workers: drawn work, played through with the parts that really come of it.
#include "compute/conv/task_balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
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

/// What the busiest of `workers` computes: each has equally many tasks that follow each other.
std::size_t busiestOf(const std::vector<std::size_t>& tasks, std::size_t workers) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < workers; ++i) {
    const TaskPart part = partOf(tasks.size(), workers, i);
    most = std::max(most, std::accumulate(tasks.begin() + static_cast<std::ptrdiff_t>(part.from),
                                          tasks.begin() + static_cast<std::ptrdiff_t>(part.to), std::size_t{0}));
  }
  return most;
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
    EXPECT_LE(busiestOf(tasks, workers), 1.2 * double(all) / double(workers) + 1)
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
    EXPECT_LE(double(busiestOf(tasksOf(work, cut), workers)), spanOf(work, cut, workers) * share * (1 + 1e-9));
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
