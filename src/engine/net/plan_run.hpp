// A call over several hosts whose buffers hold what it works on: one plan, cut into chunks.
#pragma once

#include "engine/net/chunked_run.hpp"

namespace tacc {

/// Runs a call of equal blocks to its end.
void runPlan(ChunkedRun& run, const NetworkCall& call);

}  // namespace tacc
