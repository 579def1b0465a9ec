// The threads of a process besides its first. A process lives until its last thread ends: one whose main() has called
// pthread_exit() goes on, but what is asked of it by its number is asked of its first thread, which is a zombie and has
// no memory.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tacc {

/// Calls `take` with the number of each thread of `process` but the first, until it returns true; returns whether one
/// did. None where /proc does not tell.
template <class Take>
bool someLaterThread(pid_t process, const Take& take) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/task", process);
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir(path.data()), ::closedir);
  if (threads == nullptr) return false;
  bool isTaken = false;
  while (const dirent* const entry = isTaken ? nullptr : ::readdir(threads.get())) {
    pid_t thread = process;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), thread);
    isTaken = thread != process && take(thread);  // "." and ".." are no numbers
  }
  return isTaken;
}

}  // namespace tacc
