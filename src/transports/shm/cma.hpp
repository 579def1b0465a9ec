// Cross memory attach: reading and writing another process's private memory with one system call (process_vm_readv,
// process_vm_writev).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace tacc {

/// Copies `bytes` at `from` in process `pid` to `to`. Throws taccRemoteError if that process is gone, taccSystemError
/// otherwise; both name errno and the process.
void readRemote(pid_t pid, void* to, const void* from, std::size_t bytes);

/// The same from here to `to` in process `pid`, which must want it there. False where it is gone, or the kernel does
/// not let others write that memory; a part may be written then.
bool tryWriteRemote(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept;

/// Whether this process may write where it may read: some sandboxes let it only read. Asked once.
bool mayWriteRemote() noexcept;

/// Whether readRemote works towards `pid`: a real read of the 8 bytes at `remoteAddress`, which must be `expectedValue`
/// (a process number of another namespace may name a stranger). Never throws.
bool probeCma(pid_t pid, const void* remoteAddress, std::uint64_t expectedValue) noexcept;

}  // namespace tacc
