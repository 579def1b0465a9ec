// How MPI goes on with what it has under way while this library waits.
#pragma once

#include <mpi.h>

namespace tacc::mpi {

/// MPI is initialized. Local.
void learnHowMpiYields() noexcept;

/// Lets MPI move its messages. `never`: a request of a message that nobody sends; it is tested. MPI keeps the core,
/// also where it would give it away otherwise: the wait that this interrupts does so itself, when it is time.
void letMpiProgress(MPI_Request& never) noexcept;

}  // namespace tacc::mpi
