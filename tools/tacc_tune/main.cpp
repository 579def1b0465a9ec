// tacc_tune: measures which algorithms are the fastest on this machine, for TACC_TUNE_FILE. See --help and
// docs/tuning.md.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "comm/launch_id.hpp"
#include "coordinator/interrupt.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "session.hpp"
#include "worker/worker.hpp"

int main(int argc, char** argv) {
  using namespace tacc;
  const tune::Options options = tune::parseOptions(argc, argv);
  try {
    if (options.isRank) bench::dieWithParent();
    if (options.isRank || isLaunched())
      tune::runSession(options);
    else
      tune::runRanks(options);
    return 0;
  } catch (const bench::Interrupted& interrupt) {
    fmt::print(stderr, "tacc_tune: interrupted\n");
    return 128 + interrupt.signal();
  } catch (const std::exception& error) {
    fmt::print(stderr, "tacc_tune: {}\n", error.what());
    return 1;
  }
}
