// All runs of the program, on one rank of them.
#pragma once

#include "dataset.hpp"
#include "options.hpp"

namespace tacc::train {

/// The images that the options ask for: from a file, or drawn.
Split loadData(const Options& options);

/// Trains in every way that was asked for. Rank 0 prints a line for each epoch, then one for each run, and draws.
/// Collective over `comm`.
void runSession(const Options& options, const Split& data, taccComm_t comm);

}  // namespace tacc::train
