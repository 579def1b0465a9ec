#pragma once

#include "coordinator/options.hpp"

namespace tacc::bench {

/// Starts the contestants, measures all that `options` ask for, prints and writes the results. True if nothing was
/// wrong. Throws std::exception when something failed, Interrupted included; no process is left in any case.
bool runSession(const Options& options);

}  // namespace tacc::bench
