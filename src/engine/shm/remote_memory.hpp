// Private memory of the other ranks of a node, through the kernel.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "transports/shm/waiter.hpp"

namespace tacc {

class RemoteMemory {
 public:
  /// `processes[r]`: rank r's pid.
  RemoteMemory(int rank, Waiter& waiter, std::vector<int> processes)
      : rank_(rank), waiter_(waiter), processes_(std::move(processes)) {}

  /// What fails says which rank has died, or what another one has reported.
  void read(int rank, void* to, const void* from, std::size_t bytes) const;
  /// False where the kernel refuses it, or that rank is gone.
  bool tryWrite(int rank, void* to, const void* from, std::size_t bytes) const noexcept;

 private:
  int rank_;
  Waiter& waiter_;
  std::vector<int> processes_;
};

}  // namespace tacc
