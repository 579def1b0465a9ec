// Processes that a program starts, and where their programs are.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace tacc::tools {

/// CPUs that this process may use.
int allowedCpus();

/// Ends this process when its parent ends, so that no rank outlives the program that started it.
void dieWithParent();

/// A temporary file without a name, which child processes inherit.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int descriptor() const { return descriptor_; }
  /// The last `bytes` bytes.
  std::string tail(size_t bytes) const;

 private:
  int descriptor_;
};

/// A program that was started in a process group of its own. It ends with this object at the latest, and it is sent
/// SIGTERM when the one that started it dies.
class Process {
 public:
  /// Starts `command` with nothing to read and with its output going to `log`. Throws std::system_error.
  Process(const std::vector<std::string>& command, const MemoryFile& log) : Process(command, &log) {}
  /// Without a log it writes where this process does.
  Process(const std::vector<std::string>& command, const MemoryFile* log);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Also collects the exit status once it has ended.
  bool isRunning();
  /// Only after it has ended: with status 0.
  bool succeeded() const;
  /// "exit status 1" or "signal 9 (Killed)"; only after it has ended.
  std::string ending() const;
  /// Waits until `deadline`, then asks it to end, then ends it and its process group.
  void finish(std::chrono::steady_clock::time_point deadline);

 private:
  bool waitUntil(std::chrono::steady_clock::time_point deadline);

  pid_t pid_;
  bool running_ = true;
  int status_ = 0;
};

/// A program of tools/: in the source tree, for a build directory in it, or where it is installed. Throws
/// std::runtime_error.
std::string findTool(const char* name);

}  // namespace tacc::tools
