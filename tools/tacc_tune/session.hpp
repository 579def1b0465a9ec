// One rank's part in the whole measurement.
#pragma once

#include "options.hpp"

namespace tacc::tune {

/// Joins the others as the launcher says, measures every point, and on rank 0 keeps the file and writes the report.
void runSession(const Options& options);

}  // namespace tacc::tune
