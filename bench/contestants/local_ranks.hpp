#pragma once

namespace tacc::bench {

/// What `tacc_bench --worker` runs: ranks of tacc or of the memory bound in this process. `argv` as made by
/// workerArguments() in coordinator/launch.hpp, from the word after --worker on. Returns the exit status.
int runLocalRanks(int argc, char** argv);

}  // namespace tacc::bench
