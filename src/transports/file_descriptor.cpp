#include "transports/file_descriptor.hpp"

#include <fcntl.h>

#include "base/error.hpp"

namespace tacc {

FileDescriptor duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) failErrno("cannot duplicate descriptor {} (if too many files are open, raise ulimit -n)", fd);
  return FileDescriptor(copy);
}

}  // namespace tacc
