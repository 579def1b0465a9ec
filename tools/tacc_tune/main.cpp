// tacc_tune: measures which algorithms are the fastest on this machine, for TACC_TUNE_FILE; tacc_tune conv: which
// kernels are, for taccConvLoadTuning. See --help, docs/use/tuning.md and docs/use/compute.md.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "comm/launch/launch_id.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "session.hpp"
#include "support/interrupt.hpp"
#include "support/output.hpp"
#include "support/process.hpp"
#include "tune_conv.hpp"

int main(int argc, char** argv) {
  using namespace tacc;
  tools::requireStandardOutput("tacc_tune");
  try {
    if (argc > 1 && std::string_view(argv[1]) == "conv") return tune::tuneConv(argc - 1, argv + 1);
    const tune::Options options = tune::parseOptions(argc, argv);
    if (options.isRank) tools::dieWithParent();
    if (options.isRank || isLaunched())
      tune::runSession(options);
    else
      tune::runRanks(options);
    return 0;
  } catch (const tools::Interrupted& interrupt) {
    tools::complain("tacc_tune: interrupted\n");
    return 128 + interrupt.signal();
  } catch (const std::exception& error) {
    tools::complain("tacc_tune: {}\n", error.what());
    return 1;
  }
}
