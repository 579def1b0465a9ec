// By what a file is known again whose descriptor the program may have closed, as a process does that becomes a daemon:
// the number may be that of another file then.
#pragma once

#include <sys/stat.h>

#include <utility>

namespace tacc {

using FileId = std::pair<dev_t, ino_t>;

/// {0, 0}, which is no file, if it cannot be found out.
inline FileId identify(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

}  // namespace tacc
