// A process whose first thread has ended while another goes on.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "support/child_process.hpp"

namespace tacc::test {

/// To be called by the first thread of a forked child, which ends at once, as that of a program does whose main() calls
/// pthread_exit() (which would unwind the test's frames). Another thread runs `body` then, and ends the child with what
/// it returns, as endAfter().
[[noreturn]] inline void endFirstThread(std::function<int()> body) {
  const pid_t process = ::getpid();
  std::thread([process, run = std::move(body)] {
    const auto isZombie = [process] {
      char line[512] = {};
      std::FILE* const file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "r");
      if (file == nullptr) return false;
      const bool is =
          std::fgets(line, sizeof line, file) != nullptr && std::string(line).find(") Z ") != std::string::npos;
      std::fclose(file);
      return is;
    };
    while (!isZombie()) std::this_thread::yield();
    endAfter(run);
  }).detach();
  ::syscall(SYS_exit, 0);
  std::terminate();  // is not reached
}

}  // namespace tacc::test
