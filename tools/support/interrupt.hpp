#pragma once

#include <stdexcept>

namespace tacc::tools {

/// The user pressed Ctrl-C, or somebody sent SIGTERM or SIGHUP.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// From now on these signals only make waiting calls return with EINTR, and throwIfInterrupted throw, so that all ranks
/// are stopped on the way out.
void catchInterrupts();

/// Throws Interrupted if a signal has come.
void throwIfInterrupted();

}  // namespace tacc::tools
