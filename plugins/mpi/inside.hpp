// Whether a thread is inside a call of MPI's that the program made.
#pragma once

#include <utility>

namespace tacc::mpi {

/// Whether this thread is inside a call already. An MPI may be built so that its functions call each other by the names
/// that are taken over.
class Inside {
 public:
  Inside() noexcept : before_(std::exchange(inside_, true)) {}
  ~Inside() { inside_ = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool isTrue() noexcept { return inside_; }

 private:
  bool before_;
  static inline thread_local bool inside_ = false;
};

}  // namespace tacc::mpi
