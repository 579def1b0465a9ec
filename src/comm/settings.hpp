// What the environment changes in a communicator's configuration.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "core/environment.hpp"

namespace tacc {

/// The configuration with TACC_ALGO, TACC_REPRODUCIBLE, TACC_DYNAMIC, TACC_TIMEOUT and TACC_INIT_TIMEOUT applied: the
/// environment is stronger, as it is how a user changes a program that cannot be rebuilt. Throws for an algorithm that
/// does not exist.
CommConfig applyEnvironment(CommConfig config, const Environment& environment);

/// What must be equal on all ranks of a communicator, as text. `config`: as applyEnvironment() gives it.
std::string settingsOf(const Environment& environment, const CommConfig& config);

}  // namespace tacc
