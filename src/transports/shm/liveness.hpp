// Who of the node still lives. Every process holds a POSIX record lock on byte `rank` of a file that all ranks share
// (the segment's). The kernel drops it when the process ends, however it ends, also while it is still a zombie; fork()
// does not pass it on; and it works across pid namespaces, where process numbers mean nothing.
//
// Two traps of these locks are handled here. Closing any descriptor of a file drops all locks of the process on it: so
// all descriptors are closed by FileDescriptor, which waits for the last claim of the process on that file. And a
// process never conflicts with itself: so ranks of the same process are looked up in a table of the process's own
// claims.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "transports/file_descriptor.hpp"

namespace tacc {

class Liveness {
 public:
  /// Claims byte `rank` of the file until destruction. Keeps its own descriptor. Throws taccSystemError, also if
  /// another process holds the claim. A barrier must follow before anyone asks.
  Liveness(int fd, int rank);
  /// The same with this descriptor, where the caller needs it no more.
  Liveness(FileDescriptor fd, int rank);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// Whether the claim of `rank` stands: it was made, and neither its process nor its Liveness has ended. One system
  /// call, about 0.5 us; any thread. Only claims of other processes cost it: those of this process are answered from a
  /// table.
  bool isAlive(int rank) const;

 private:
  FileDescriptor fd_;
  std::pair<dev_t, ino_t> file_;  // device and inode: what the kernel knows the locks by
  int rank_;
};

/// "running", "stopped (SIGSTOP)", "stopped (by a debugger)", "waiting for a device", "gone": from /proc/PID/stat, for
/// messages. A zombie is gone.
std::string describeProcess(pid_t pid);

}  // namespace tacc
