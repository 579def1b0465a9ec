// Cross memory attach: reading another process's private memory with one system call (process_vm_readv).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace tacc {

/// Copies `bytes` at `from` in process `pid` to `to`. Throws taccRemoteError if that process is gone, taccSystemError
/// otherwise; both name errno and the process.
void readRemote(pid_t pid, void* to, const void* from, std::size_t bytes);

/// Whether readRemote works towards `pid`: a real read of the 8 bytes at `remoteAddress`, which must be `expectedValue`
/// (a process number of another namespace may name a stranger). Never throws.
bool probeCma(pid_t pid, const void* remoteAddress, std::uint64_t expectedValue) noexcept;

}  // namespace tacc
