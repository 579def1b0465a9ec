// Ranks of this host that were started without the plugin: they would not take part in what it does.
#pragma once

#include <string>

namespace tacc::mpi {

/// Looks at the processes that the launcher started on this host, as far as they are this process's siblings, have a
/// rank of Hydra, Open MPI or PMI in their environment, and use MPI. After MPI_Init, when all ranks have loaded their
/// libraries. Returns e.g. "rank 1, 3", or "" when none was found; needs no other rank to take part.
std::string ranksWithoutPlugin();
/// Whether this is the lowest of the siblings that have it.
bool isFirstWithPlugin();

}  // namespace tacc::mpi
