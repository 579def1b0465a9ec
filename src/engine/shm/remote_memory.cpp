#include "engine/shm/remote_memory.hpp"

#include "core/error.hpp"
#include "transports/shm/cma.hpp"

namespace tacc {

template <class Move>
void RemoteMemory::move(int rank, const char* doing, const Move& move) const {
  const int process = processes_[static_cast<std::size_t>(rank)];
  try {
    move(process);
  } catch (const Error& error) {
    if (error.result() != taccRemoteError) throw;
    // A rank may have left because another one failed: then that is what happened.
    waiter_.checkErrors();
    fail(taccRemoteError, "rank {} (process {}) has died; rank {} was {} its memory", waiter_.nameOf(rank), process,
         waiter_.nameOf(rank_), doing);
  }
}

void RemoteMemory::read(int rank, void* to, const void* from, std::size_t bytes) const {
  move(rank, "reading", [&](int process) { readRemote(process, to, from, bytes); });
}

void RemoteMemory::write(int rank, void* to, const void* from, std::size_t bytes) const {
  move(rank, "writing", [&](int process) { writeRemote(process, to, from, bytes); });
}

}  // namespace tacc
