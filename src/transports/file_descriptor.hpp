// The owner of a file descriptor.
#pragma once

#include <utility>

namespace tacc {

/// Closes `fd`, unless that would drop a lock which this process holds through another descriptor of the same file
/// (closing any descriptor of a file drops all POSIX locks of the process on it): then it is kept and closed with the
/// last such lock. See liveness.hpp.
void closeDescriptor(int fd) noexcept;

/// Owns one descriptor; move only.
class FileDescriptor {
 public:
  FileDescriptor() = default;  // owns nothing
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  /// The descriptor, -1 when it owns none.
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  /// Gives the descriptor to the caller, who must close it.
  int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes what it owns and owns `fd` from now on.
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) closeDescriptor(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

/// Another descriptor of the same open file, closed on exec. Throws taccSystemError.
FileDescriptor duplicate(int fd);

}  // namespace tacc
