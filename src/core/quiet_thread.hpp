// Threads of the library's that take no signals: those are the program's.
#pragma once

#include <pthread.h>

#include <array>
#include <csignal>
#include <thread>
#include <utility>

namespace tacc {

/// Blocks this thread's signals, but those of faults, which the kernel gives to who makes them: a program that handles
/// its own, as of pages that it guards, may do so in a function of its that the thread calls.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t most;
    ::sigfillset(&most);
    for (const int fault : std::array{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&most, fault);
    ::pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// A thread inherits the mask of who starts it. Throws std::system_error where there can be no more threads.
template <class Thread = std::thread, class Body>
Thread startQuietThread(Body&& body) {
  const BlockedSignals blocked;
  return Thread(std::forward<Body>(body));
}

}  // namespace tacc
