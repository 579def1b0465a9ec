// What the command line of tacc_tune asks for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"
#include "support/cluster_shape.hpp"

namespace tacc::tune {

struct Options {
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;  // of the larger buffer, as in tacc_bench
  double minutes = 5;              // for all points together
  std::string output;              // empty: nothing is kept
  std::string json;
  std::string checked;  // a tuning file whose choices are measured
  bool restart = false;
  bool measuresRegret = false;  // of the choices that calls make freely
  std::string regrets;          // to which rank 0 adds that of every point, a number a line; empty: nothing

  int ranks = 0;  // to start; 0: one for each CPU or host
  std::optional<tools::ClusterShape> cluster;
  std::vector<std::string> placements = {"block"};  // one after the other
  bool isRank = false;                              // started by tacc_tune itself

  /// The arguments with which a rank is started.
  std::vector<std::string> ofRank() const;
};

/// Prints the usage and exits: with 0 when asked for help, with 2 when something is wrong.
Options parseOptions(int argc, char** argv);

}  // namespace tacc::tune
