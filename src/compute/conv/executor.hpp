// The caller's threads as the algorithms use them.
#pragma once

#include <cstddef>

#include "tacc/compute.h"

namespace tacc::conv {

class Executor {
 public:
  explicit Executor(const taccExecutor_t& executor) : executor_(executor) {}

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
