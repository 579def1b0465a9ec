// The owner of a file descriptor.
//
// A child made by fork() would keep the connections of its parent open, and the peers of a parent that died would not
// know. So every descriptor that is owned here is this process's alone: in a child it is closed, without a word to the
// other end, and its number stays taken by /dev/null, as copies of its owner are still about. shareWithChildren()
// excepts one. On exec all close.
//
// None keeps the number of a standard stream, which a program may have been started without, or have closed: what it
// prints there would go to the other ranks.
#pragma once

#include <array>
#include <mutex>
#include <utility>

#include "core/fork.hpp"

namespace tacc {

/// `fd`, or what stands for it where that is 0, 1 or 2: another number of the same open file, closed on exec, and `fd`
/// is closed. -1, with errno, where `fd` is, or where there is no other number left. Nobody may have used `fd` yet.
int awayFromStandard(int fd) noexcept;
/// While it lives, the numbers of standard streams that nobody has are taken. For what makes descriptors of files that
/// this process may hold locks on: to close one of those, as awayFromStandard() does, would drop them.
class TakenStandardNumbers {
 public:
  TakenStandardNumbers() noexcept;
  ~TakenStandardNumbers();
  TakenStandardNumbers(const TakenStandardNumbers&) = delete;
  TakenStandardNumbers& operator=(const TakenStandardNumbers&) = delete;

 private:
  std::array<int, 3> taken_{-1, -1, -1};
};

/// A child made by fork() does not inherit `fd`, until it is closed by closeDescriptor(). Any thread.
void keepFromChildren(int fd) noexcept;
/// It does from now on.
void shareWithChildren(int fd) noexcept;
/// Held while a descriptor is made and owned, or given up and closed, so that no fork comes in between.
ForkMutex& descriptorMutex() noexcept;
/// keepFromChildren() undone, and close(2).
void closeNow(int fd) noexcept;

/// Closes `fd`, unless that would drop a lock which this process holds through another descriptor of the same file
/// (closing any descriptor of a file drops all POSIX locks of the process on it): then it is kept and closed with the
/// last such lock. See liveness.hpp.
void closeDescriptor(int fd) noexcept;

/// Owns one descriptor; move only.
class FileDescriptor {
 public:
  FileDescriptor() = default;  // owns nothing
  explicit FileDescriptor(int fd) noexcept : fd_(awayFromStandard(fd)) { keepFromChildren(fd_); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) replace(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(); }

  /// The descriptor, -1 when it owns none.
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  /// Gives the descriptor to the caller, who must close it with closeNow().
  int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes what it owns and owns `fd` from now on.
  void reset(int fd = -1) noexcept {
    fd = awayFromStandard(fd);
    keepFromChildren(fd);
    replace(fd);
  }

 private:
  void replace(int fd) noexcept {
    if (fd_ >= 0) closeDescriptor(fd_);
    fd_ = fd;
  }

  int fd_ = -1;
};

/// Owns what `make` returns, such as the result of accept4(), from the moment on at which it exists. `make` does not
/// wait. errno is as `make` left it.
template <class Make>
FileDescriptor ownDescriptor(const Make& make) {
  const std::lock_guard lock(descriptorMutex());
  return FileDescriptor(make());
}

/// Another descriptor of the same open file, closed on exec. Throws taccSystemError.
FileDescriptor duplicate(int fd);

}  // namespace tacc
