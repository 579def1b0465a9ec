#pragma once

#include "coordinator/options.hpp"
#include "coordinator/venue.hpp"

namespace tacc::bench {

/// Lets the contestants come to life at `venue`, measures all that `options` ask for, prints and writes the results.
/// True if nothing was wrong. Throws std::exception when something failed, Interrupted included; no process is left in
/// any case.
bool runSession(const Options& options, Venue& venue);

}  // namespace tacc::bench
