#include "transports/file_descriptor.hpp"

#include <fcntl.h>

#include "base/error.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {

FileDescriptor duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) failDescriptor("cannot duplicate descriptor {}", fd);
  return FileDescriptor(copy);
}

}  // namespace tacc
