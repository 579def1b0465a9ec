#include "transports/shm/cma.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "transports/shm/later_threads.hpp"

namespace tacc {
namespace {

/// The kernel moves at most 2 GiB less a page in one call.
constexpr std::size_t callBytes = std::size_t{1} << 30;

using Move = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

/// `task`: a process, or one of its threads. Returns 0 or errno; what stops short without a reason is EFAULT.
int moveBy(Move move, pid_t task, void* here, void* there, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(callBytes, bytes - done);
    const iovec local{static_cast<std::byte*>(here) + done, piece};
    const iovec remote{static_cast<std::byte*>(there) + done, piece};
    const ssize_t count = move(task, &local, 1, &remote, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EFAULT;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

int moveAll(Move move, pid_t pid, void* here, void* there, std::size_t bytes) noexcept {
  int code = moveBy(move, pid, here, there, bytes);
  if (code != ESRCH) return code;
  // Not kept: the thread's number is another's once it has ended.
  (void)someLaterThread(pid, [&](pid_t thread) {
    code = moveBy(move, thread, here, there, bytes);
    return code != ESRCH;
  });
  return code;
}

const char* whatDoesWithout(int code) noexcept {
  switch (code) {
    case EPERM:
      return "; a process that changes its user, or forbids to be looked at (PR_SET_DUMPABLE), after it has joined "
             "ends what was allowed before: TACC_CMA=off does without";
    case EFAULT:
      return "; nothing is mapped there, or memory that only its own process may read, such as a device's or of "
             "memfd_secret: TACC_CMA=off does without";
    default:
      return "";
  }
}

}  // namespace

void readRemote(pid_t pid, void* to, const void* from, std::size_t bytes) {
  const int code = moveAll(::process_vm_readv, pid, to, const_cast<void*>(from), bytes);
  if (code == 0) return;
  fail(code == ESRCH ? taccRemoteError : taccSystemError, "cannot read {} bytes at {} of process {}: {} (errno {}){}",
       bytes, from, pid, std::strerror(code), code, whatDoesWithout(code));
}

bool tryWriteRemote(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept {
  return moveAll(::process_vm_writev, pid, const_cast<void*>(from), to, bytes) == 0;
}

bool mayWriteRemote() noexcept {
  static const bool may = [] {
    std::uint64_t from = 1, to = 0;
    return moveAll(::process_vm_writev, ::getpid(), &from, &to, sizeof to) == 0 && to == from;
  }();
  return may;
}

bool probeCma(pid_t pid, const void* remoteAddress, std::uint64_t expectedValue) noexcept {
  std::uint64_t value = 0;
  return moveAll(::process_vm_readv, pid, &value, const_cast<void*>(remoteAddress), sizeof value) == 0 &&
         value == expectedValue;
}

}  // namespace tacc
