// tacc_train: trains a small network on several ranks, with tacc/compute.h for the layers and tacc for what ranks tell
// each other: synchronously, and by elastic averaging in every mode of tacc/easgd.h. See --help, and
// docs/use/easgd_training.md.
#include <cstdio>
#include <exception>

#include "errors.hpp"
#include "options.hpp"
#include "ranks.hpp"
#include "session.hpp"

int main(int argc, char** argv) {
  using namespace tacc::train;
  try {
    const Options options = parseOptions(argc, argv);
    const std::vector<Trial> trials = loadTrials(options);  // before the ranks, which then share its memory
    const auto body = [&](taccComm_t comm) { runSession(options, trials, comm); };
    return (options.launched ? joinRanks(body) : forkRanks(options.ranks, body)) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tacc_train: %s\n", error.what());
    return 1;
  }
}
