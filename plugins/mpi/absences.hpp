// Ranks that cannot join: found, agreed on, and said once.
#pragma once

#include <optional>
#include <string>

#include "tacc/tacc.h"

namespace tacc::mpi {

struct Communicator;

/// Whether this process may open as many files more as a rank needs that meets others, and tells them why it does not
/// come. Where not, they could wait in vain until their time is out. Some microseconds.
bool hasFilesToMeet() noexcept;
/// Why not, and what to do about it.
std::string describeNoFiles();

/// The rank to say why ranks could not join, the same on all: the first that had trouble of its own, or else the first
/// that had any. Nothing when all have joined. Collective over `communicator`, by MPI: it ends where all have come.
std::optional<int> firstInTrouble(const Communicator& communicator, taccResult_t result);

/// All its calls go to MPI from now on, on all ranks; `speaker` says why, if it has not for another communicator.
void leaveToMpi(Communicator& communicator, int speaker, const std::string& why) noexcept;

}  // namespace tacc::mpi
