#include "transports/shm/cma.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace tacc {
namespace {

/// The kernel moves at most 2 GiB less a page in one call.
constexpr std::size_t callBytes = std::size_t{1} << 30;

/// Returns 0 or errno; a read that stops short without a reason is EFAULT.
int readLoop(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(callBytes, bytes - done);
    const iovec local{static_cast<std::byte*>(to) + done, piece};
    const iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(from)) + done, piece};
    const ssize_t count = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EFAULT;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

}  // namespace

void readRemote(pid_t pid, void* to, const void* from, std::size_t bytes) {
  const int code = readLoop(pid, to, from, bytes);
  if (code == 0) return;
  fail(code == ESRCH ? taccRemoteError : taccSystemError, "cannot read {} bytes at {} of process {}: {} (errno {})",
       bytes, from, pid, std::strerror(code), code);
}

bool probeCma(pid_t pid, const void* remoteAddress, std::uint64_t expectedValue) noexcept {
  std::uint64_t value = 0;
  return readLoop(pid, &value, remoteAddress, sizeof value) == 0 && value == expectedValue;
}

}  // namespace tacc
