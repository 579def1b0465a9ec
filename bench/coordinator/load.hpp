#pragma once

#include <sys/types.h>

#include <vector>

namespace tacc::bench {

/// Processes that compute without end beside the ranks, as other programs of a machine do.
class Load {
 public:
  /// Throws when one cannot be started.
  explicit Load(int processes);
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void end() noexcept;

  std::vector<pid_t> processes_;
};

}  // namespace tacc::bench
