#pragma once

#include <optional>

#include "coordinator/options.hpp"

namespace tacc::bench {

/// The job that a launcher has started this process for; nothing where it is alone. Throws std::runtime_error where the
/// launcher does not say all of it.
std::optional<Job> findJob();

/// This process's part in a measurement of the job that a launcher has started (options.job): rank 0 measures, prints
/// and writes, the others do what it says. Returns the exit status. Throws std::runtime_error; where rank 0 failed,
/// only there.
int runJobSession(const Options& options);

}  // namespace tacc::bench
