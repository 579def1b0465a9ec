// The words on standard output.
#pragma once

#include <string>
#include <vector>

#include "trainer.hpp"

namespace tacc::train {

/// A run and its epochs.
struct Curve {
  Run run;
  std::vector<EpochRecord> records;

  /// Of the time of all epochs: waiting for communication.
  double waitedShare() const;
};

/// The title and the names of the columns, behind #.
std::string tableHead(const std::string& title);
std::string tableLine(const Run& run, const EpochRecord& record);

/// One line for each run, with how much faster it was than "original" with the same tau. Empty for a single run.
std::string summaryTable(const std::vector<Curve>& curves);

}  // namespace tacc::train
