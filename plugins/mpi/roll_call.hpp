// Ranks of other hosts that were started without the plugin: the launcher's store tells who has it.
#pragma once

#include <vector>

namespace tacc::mpi {

/// Before MPI_Init: leaves word in the store of Hydra or Open MPI that this rank has the plugin. MPI_Init itself, in
/// which all ranks meet, hands it round. Does nothing where all ranks are on this host, or where the launcher is
/// another.
void answerRollCall() noexcept;

/// After MPI_Init: the ranks that have left no such word, in their order; the same on all that have. Empty where it was
/// not asked for, or where the store gives no answer. Takes some 20 us a rank.
std::vector<int> ranksWithoutAnswer();

}  // namespace tacc::mpi
