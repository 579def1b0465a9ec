// All runs of the program, on one rank of them.
#pragma once

#include <vector>

#include "options.hpp"
#include "trial.hpp"

namespace tacc::train {

/// Trains in every way that was asked for, on every trial. Rank 0 prints a line for each epoch, then one for each run,
/// and draws; of several trials it prints the last epochs, then a table of accuracies. Collective over `comm`.
void runSession(const Options& options, const std::vector<Trial>& trials, taccComm_t comm);

}  // namespace tacc::train
