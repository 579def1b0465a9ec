#include "engine/shm/remote_memory.hpp"

#include "core/error.hpp"
#include "transports/shm/cma.hpp"

namespace tacc {

void RemoteMemory::read(int rank, void* to, const void* from, std::size_t bytes) const {
  const int process = processes_[static_cast<std::size_t>(rank)];
  try {
    readRemote(process, to, from, bytes);
  } catch (const Error& error) {
    if (error.result() != taccRemoteError) throw;
    // A rank may have left because another one failed: then that is what happened.
    waiter_.checkErrors();
    fail(taccRemoteError, "rank {} (process {}) has died; rank {} was reading its memory", waiter_.nameOf(rank),
         process, waiter_.nameOf(rank_));
  }
}

bool RemoteMemory::tryWrite(int rank, void* to, const void* from, std::size_t bytes) const noexcept {
  return tryWriteRemote(processes_[static_cast<std::size_t>(rank)], to, from, bytes);
}

}  // namespace tacc
