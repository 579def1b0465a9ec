// Ranks as threads of the test.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "errors.hpp"

namespace tacc::train::test {

/// Runs body(rank, comm) in one thread per rank; throws what the first of them, by rank, has thrown.
inline void runThreads(int ranks, const std::function<void(int, taccComm_t)>& body) {
  std::vector<taccComm_t> comms(static_cast<std::size_t>(ranks));
  check(taccCommInitAll(comms.data(), ranks, nullptr));
  std::vector<std::exception_ptr> errors(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < comms.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(static_cast<int>(rank), comms[rank]);
        check(taccCommDestroy(comms[rank]));
      } catch (...) {
        errors[rank] = std::current_exception();
        taccCommAbort(comms[rank]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tacc::train::test
