// The roll call of roll_call.hpp where the launcher keeps its store in PMIx, as Open MPI's does.
#pragma once

#include <optional>

namespace tacc::mpi {

/// Before MPI_Init: leaves word that this rank has the plugin. False where libpmix or its server cannot be reached, or
/// this build has no PMIx.
bool answerByPmix() noexcept;

/// After MPI_Init: whether that rank has; nothing where the server does not say.
std::optional<bool> hasAnsweredByPmix(int rank) noexcept;

}  // namespace tacc::mpi
