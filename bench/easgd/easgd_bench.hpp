// tacc_bench easgd: what an exchange and a step of each mode of EASGD cost, beside the allreduce of gradients that they
// replace.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tacc/easgd.h"

namespace tacc::bench {

struct EasgdOptions {
  std::vector<taccEasgdMode_t> modes;
  std::vector<int> periods = {1, 4, 8, 16};
  std::size_t bytes = std::size_t{100} << 20;  // of weights
  int ranks = 2;
  int repetitions = 5;
  double computeSeconds = 0;  // of a step, in which the processor does nothing
  double slowFactor = 1;      // by which the last rank computes longer than the others
  bool inTurn = false;        // of mode original: ranks compute one after the other
  float momentum = 0;
  bool privateMemory = false;
  bool launched = false;                              // ranks are started by a launcher
  taccEasgdServers_t servers = taccEasgdServerRank0;  // of asynchronous modes
  taccEasgdWire_t wire = taccEasgdWire32;             // of the modes that have a choice
  std::vector<std::string> peers;                     // whose allreduce is measured too
  std::string jsonFile;
};

/// One mode and period; milliseconds are medians over the repetitions.
struct EasgdResult {
  std::string mode;
  int period;
  double exchange;   // alone, by the clock of rank 0 between two barriers
  double allReduce;  // of gradients, in turn with the exchanges
  double bound;      // as much memory read and written in one pass, in turn with them; 0 with several hosts
  // Of the rank that is the slowest in each:
  double step;         // the mean of `period` steps, of which one exchanges
  double waitShare;    // of a step, that the program waits for exchanges
  double hiddenShare;  // of the exchanges
  double othersStep;   // of all ranks but the last, the slowest; where there is one rank: its own
};

/// What the modes are compared with, in milliseconds.
struct EasgdBaselines {
  double allReduce;           // of gradients
  double separately;          // that, and SGD in a loop behind it
  double fused;               // taccAllReduceUpdate
  double exchangeSeparately;  // an allreduce of weights, and EASGD's updates in loops behind it
};

/// Another library's allreduce of gradients, and ours in the same run, in which they take turns; milliseconds.
struct PeerAllReduce {
  std::string name;
  double peer;
  double tacc;
};

/// Of all of options.peers. Starts ranks of its own, so before this process has a communicator. Throws
/// std::runtime_error where a peer is not there.
std::vector<PeerAllReduce> measurePeers(const EasgdOptions& options);

int runEasgdBench(int argc, char** argv);

}  // namespace tacc::bench
