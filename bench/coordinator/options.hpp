#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cluster_shape.hpp"
#include "coordinator/sizes.hpp"
#include "tacc/tacc.h"
#include "worker/collectives.hpp"

namespace tacc::bench {

/// What the command line asks for.
struct Options {
  const Collective* collective = nullptr;
  SizeRange sizes;
  int iterations = 0;  ///< per size; 0: as many as fit into the time for one size
  int warmup = -1;     ///< per repetition; -1: a tenth of the iterations, or more between hosts
  int repetitions = 5;
  bool check = true;
  std::vector<taccDataType_t> types;
  std::vector<taccRedOp_t> ops;
  std::vector<int> roots;
  int ranks = 0;
  std::string algorithm;
  bool explains = false;
  bool libraryMemory = false;
  bool threads = false;
  bool bound = false;
  size_t poolBytes = 0;  ///< 0: from the cache size
  std::vector<std::string> peers;
  std::map<std::string, std::vector<std::string>> peerArguments;
  std::string peerDirectory;
  /// The contestant that the others are compared with.
  std::string reference = "tacc";
  /// Hosts to run on instead of this node, and where on them.
  std::optional<ClusterShape> cluster;
  std::string placement = "block";
  std::string jsonFile;
  std::string plotFile;

  /// "private" or "library".
  const char* memoryName() const { return libraryMemory ? "library" : "private"; }
};

/// CPUs that this process may use.
int allowedCpus();

/// Reads the command line. Prints the usage and exits: with 0 when asked for help, with 2 when something is wrong.
Options parseOptions(int argc, char** argv);

}  // namespace tacc::bench
