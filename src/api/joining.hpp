// Joining a communicator without blocking: a thread joins while the program goes on, asks, or aborts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

class Joining {
 public:
  using Make = std::function<std::unique_ptr<Communicator>(const std::stop_token& stop)>;

  /// Starts to join. `comm` is a handle of makeJoiningHandle(); its life becomes active, or notJoined with the error's
  /// text. Outlived by the handle, which owns it.
  Joining(taccComm& comm, const char* function, Make make);
  /// Ends the joining, if it goes on, and waits for that.
  ~Joining() = default;
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

  /// Why it could not join.
  taccResult_t result() const noexcept { return result_.load(); }

 private:
  void run(const std::stop_token& stop, taccComm& comm, const char* function, const Make& make) noexcept;

  std::atomic<taccResult_t> result_{taccInProgress};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace tacc
