// That a process has this library, for the ranks of a host that look for each other: to read what a process has mapped
// takes half a millisecond for each, and all ranks look at all others.
#pragma once

namespace tacc::mpi {

/// Before MPI_Init: binds an abstract name of the process, for which it keeps a descriptor, but where few may be open.
/// Who is not seen for want of one is looked at closely.
void showPresence() noexcept;

/// When all have looked.
void hidePresence() noexcept;

/// Whether the process shows itself: of the caller's processes (PID namespace) and network.
bool isPresent(int process) noexcept;

}  // namespace tacc::mpi
