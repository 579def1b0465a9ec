// The executor over OpenMP: every task once, and workers that no two tasks have at the same time.
#include <gtest/gtest.h>
#include <tacc/compute_openmp.h>

#include <atomic>
#include <vector>

namespace tacc::test {
namespace {

struct Seen {
  explicit Seen(std::size_t tasks, std::size_t workers) : times(tasks), byWorker(tasks), isBusy(workers) {}
  std::vector<std::atomic<int>> times;
  std::vector<int> byWorker;
  std::vector<std::atomic<bool>> isBusy;
  std::atomic<int> wrong{0};
};

void see(void* argument, std::size_t index, int worker) {
  auto& seen = *static_cast<Seen*>(argument);
  if (index >= seen.times.size() || worker < 0 || static_cast<std::size_t>(worker) >= seen.isBusy.size()) {
    ++seen.wrong;
    return;
  }
  if (seen.isBusy[static_cast<std::size_t>(worker)].exchange(true)) ++seen.wrong;
  ++seen.times[index];
  seen.byWorker[index] = worker;
  seen.isBusy[static_cast<std::size_t>(worker)] = false;
}

TEST(OpenMpExecutor, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 4, 7, 16}) {
    const taccExecutor_t executor = taccOpenMpExecutor(&threads);
    EXPECT_EQ(executor.workers, threads);
    for (const std::size_t tasks : {0, 1, 2, 3, 5, 8, 13, 100, 1001}) {
      Seen seen(tasks, static_cast<std::size_t>(threads));
      executor.run(executor.context, tasks, see, &seen);
      EXPECT_EQ(seen.wrong, 0);
      for (std::size_t i = 0; i < tasks; ++i) {
        ASSERT_EQ(seen.times[i], 1) << "task " << i << " of " << tasks << ", " << threads << " threads";
      }
    }
  }
}

/// Within a region of the caller's OpenMP gives one thread, which has to do everything.
TEST(OpenMpExecutor, RunsEveryTaskWithFewerThreadsThanAskedFor) {
  int threads = 4;
  const taccExecutor_t executor = taccOpenMpExecutor(&threads);
  Seen seen(50, 4);
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    executor.run(executor.context, seen.times.size(), see, &seen);
  }
  EXPECT_EQ(seen.wrong, 0);
  for (std::size_t i = 0; i < seen.times.size(); ++i) EXPECT_EQ(seen.times[i], 1);
}

}  // namespace
}  // namespace tacc::test
