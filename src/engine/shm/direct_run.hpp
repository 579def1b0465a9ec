// The run of a direct update among the ranks of a host: each makes its part of all ranks' numbers new, in their memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/direct_update.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "engine/shm/call_exchange.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class DirectRun {
 public:
  DirectRun(int rank, int ranks, CallExchange& exchange, BufferExchange& buffers, Waiter& waiter)
      : rank_(rank), ranks_(ranks), exchange_(exchange), buffers_(buffers), waiter_(waiter) {}

  /// False, on all ranks, where some cannot reach the memory of others: nothing was done then.
  bool run(const DirectUpdate& update, std::uint64_t signature);

 private:
  int rank_, ranks_;
  CallExchange& exchange_;
  BufferExchange& buffers_;
  Waiter& waiter_;
  CallBuffers places_;                        // of all ranks, as they are reached here
  std::vector<float*> numbers_, companions_;  // of all ranks
};

}  // namespace tacc
