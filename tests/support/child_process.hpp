// Processes for tests: a child runs a function and ends without the parent's exit handlers.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

namespace tacc::test {

/// Ends this process, a forked child, with what `body` returns; 2 if it throws. Whatever happens in it, a child does
/// not go on as the test program.
[[noreturn]] inline void endAfter(const std::function<int()>& body) {
  int status = 2;
  try {
    status = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child %d: %s\n", ::getpid(), error.what());
  }
  std::fflush(nullptr);
  ::_exit(status);
}

/// A forked process. Exit status 0: the function returned true; 1: it returned false; 2: it threw.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<bool()>& function) : pid_(::fork()) {
    if (pid_ == 0) endAfter([&] { return function() ? 0 : 1; });
  }
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ <= 0) return;
    kill();
    wait();
  }

  pid_t pid() const { return pid_; }
  void kill(int signal = SIGKILL) const { ::kill(pid_, signal); }
  /// Returns when the child has ended, without collecting it: it stays a zombie.
  void waitUntilZombie() const {
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  /// Exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

/// Descriptors that this process has open.
inline int countOpenDescriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// A byte at a time between processes: the reader waits for the writer.
class Signal {
 public:
  Signal() {
    if (::pipe(ends_) != 0) std::terminate();
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void give() const {
    if (::write(ends_[1], "x", 1) != 1) std::terminate();
  }
  void await() const {
    char byte;
    if (::read(ends_[0], &byte, 1) != 1) std::terminate();
  }

 private:
  int ends_[2];
};

}  // namespace tacc::test
