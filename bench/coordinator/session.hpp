#pragma once

#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"
#include "coordinator/venue.hpp"

namespace tacc::bench {

/// Lets the contestants come to life at `venue`, measures all that `options` ask for, prints and writes the results.
/// True if nothing was wrong. Throws std::exception when something failed, Interrupted included; no process is left in
/// any case.
bool runSession(const Options& options, Venue& venue);

/// The rows of such a session, with nothing printed or written.
std::vector<Row> measureRows(const Options& options, Venue& venue);

}  // namespace tacc::bench
