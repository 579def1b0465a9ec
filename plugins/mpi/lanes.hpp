// Where persistent collectives run. Once made, in one order, they may be started in another order on each rank, also
// before a blocking call that another rank makes first. So each has a tacc communicator of its own, split off that of
// its MPI communicator, and a stream: calls of different ones never meet.
#pragma once

#include <memory>

namespace tacc::mpi {

struct Communicator;

/// A lane for one more persistent request on `communicator`, which has joined: one that no request has any more on any
/// rank, or a new one. The request keeps the pointer as long as it may be started or is under way. Collective over
/// `communicator`, and waits for all of it. Null, on all ranks alike, where there are many already or one could not be
/// made.
std::shared_ptr<Communicator> takeLane(Communicator& communicator);

/// Ends those of a communicator that ends, on which nothing is under way.
void endLanes(Communicator& communicator) noexcept;

}  // namespace tacc::mpi
