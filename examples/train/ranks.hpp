// Where ranks come from.
#pragma once

#include <functional>

#include "tacc/tacc.h"

namespace tacc::train {

/// Forks `ranks` processes, runs `body` in each with the communicator of all, and waits for them. True if all ended
/// well; what is wrong in one, it says itself on standard error. They end with this process.
bool forkRanks(int ranks, const std::function<void(taccComm_t)>& body);

/// Runs `body` in this process, a rank that a launcher has started (docs/use/running.md). False: it has failed, and
/// said why.
bool joinRanks(const std::function<void(taccComm_t)>& body);

}  // namespace tacc::train
