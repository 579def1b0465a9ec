// tacc_tune conv: which algorithm is the fastest for each convolution on this CPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tacc/compute.h"

namespace tacc::tune {

/// An algorithm that serves a convolution, and the least time seen.
struct ConvCandidate {
  std::string algorithm;
  std::string kernel;
  double seconds;
};

struct TunedConv {
  taccConvDesc_t desc;
  std::vector<ConvCandidate> candidates;  ///< the fastest first; never empty
};

/// Runs a convolution with every algorithm that serves it, in turn, for about `seconds`. Those that the model or
/// their first run leaves far behind are not run again. Throws std::runtime_error when the description is wrong.
TunedConv measureConv(const taccConvDesc_t& desc, double seconds, const taccExecutor_t& executor);

/// The file that taccConvLoadTuning reads, for this CPU.
std::string tuningText(const std::vector<TunedConv>& tuned);

/// The subcommand: argv[0] is its name. Returns the exit status.
int tuneConv(int argc, char** argv);

}  // namespace tacc::tune
