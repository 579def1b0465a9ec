// A streamed sum over several hosts: chunks of a plan's run are made before they go out, and taken when they are
// complete, in a ring of windows. While one chunk is under way, the next are made and the one before is taken.
#pragma once

#include "engine/net/chunked_run.hpp"
#include "transports/shm/library_window.hpp"

namespace tacc {

/// Runs an allreduce with Call::streamed to its end. `window`: for its chunks.
void runStreamed(ChunkedRun& run, const NetworkCall& call, LibraryWindow& window);

}  // namespace tacc
