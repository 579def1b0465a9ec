// Starting the ranks that measure, where no launcher has.
#pragma once

#include "options.hpp"

namespace tacc::tune {

/// Starts them on this host or on a virtual cluster, as processes of this program, and waits for all. Rank 0 writes
/// where this process does. Throws std::exception when one fails; none is left in any case.
void runRanks(const Options& options);

}  // namespace tacc::tune
