// An executor whose threads take tasks in an order that differs from run to run.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "tacc/compute.h"

namespace tacc::conv::test {

class ThreadedExecutor {
 public:
  explicit ThreadedExecutor(int workers) : executor_{this, workers, run} {}
  const taccExecutor_t& get() const { return executor_; }

 private:
  static void run(void* context, std::size_t tasks, void (*task)(void*, std::size_t, int), void* argument) {
    std::atomic<std::size_t> next{tasks};
    std::vector<std::thread> threads;
    for (int worker = 0; worker < static_cast<ThreadedExecutor*>(context)->executor_.workers; ++worker) {
      threads.emplace_back([&, worker] {
        for (;;) {
          const std::size_t left = next.fetch_sub(1);
          if (left == 0 || left > tasks) return;
          task(argument, left - 1, worker);  // from the last to the first
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  taccExecutor_t executor_;
};

}  // namespace tacc::conv::test
