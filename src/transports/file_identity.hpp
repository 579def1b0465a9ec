// By what a file is known again whose descriptor the program may have closed, as a process does that becomes a daemon:
// the number may be that of another file then.
#pragma once

#include <sys/stat.h>

#include <utility>

#include "transports/file_descriptor.hpp"

namespace tacc {

using FileId = std::pair<dev_t, ino_t>;

/// {0, 0}, which is no file, if it cannot be found out.
inline FileId identify(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

/// Where the program has closed `fd`, which was of the file `id`: its number is given up, open as it may be, and what
/// is there now is the program's, also in its children.
inline void giveUpReplaced(FileDescriptor& fd, const FileId& id) noexcept {
  if (!fd.valid() || identify(fd.get()) == id) return;
  shareWithChildren(fd.get());
  (void)fd.release();
}

}  // namespace tacc
