// The caller's threads as the algorithms use them.
#pragma once

#include <cstddef>

#include "tacc/compute.h"

namespace tacc::conv {

/// Everything in the calling thread.
inline const taccExecutor_t& serialExecutor() {
  static constexpr taccExecutor_t serial = {
      nullptr, 1, [](void*, std::size_t tasks, void (*task)(void*, std::size_t, int), void* argument) {
        for (std::size_t i = 0; i < tasks; ++i) task(argument, i, 0);
      }};
  return serial;
}

class TaskExecutor {
 public:
  explicit TaskExecutor(const taccExecutor_t& executor) : executor_(executor) {}

  int workers() const { return executor_.workers; }

  /// body(index, worker) for every index in [0, tasks). Nothing is allocated, and `body` does not throw.
  template <class Body>
  void forEach(std::size_t tasks, const Body& body) const {
    if (tasks == 1) {
      body(std::size_t{0}, 0);
      return;
    }
    executor_.run(
        executor_.context, tasks,
        [](void* argument, std::size_t index, int worker) { (*static_cast<const Body*>(argument))(index, worker); },
        const_cast<Body*>(&body));
  }

 private:
  const taccExecutor_t& executor_;
};

}  // namespace tacc::conv
