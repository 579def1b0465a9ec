#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/cluster_shape.hpp"
#include "support/sizes.hpp"
#include "tacc/tacc.h"
#include "worker/collectives.hpp"

namespace tacc::bench {

/// How the time of a block follows from those that its ranks took.
enum class Average { rank0, mean, least, most };

/// The job of which this process is a rank.
struct Job {
  std::string launcher;
  int rank = 0;
  int ranks = 1;
};

/// What the command line asks for.
struct Options {
  std::string arguments;   ///< as they were given, for reports
  std::optional<Job> job;  ///< of all ranks; nothing where this process starts them itself
  const Collective* collective = nullptr;
  tools::SizeRange sizes;
  int iterations = 0;  ///< per size; 0: as many as fit into the time for one size
  int warmup = -1;     ///< per repetition; -1: a tenth of the iterations, or more between hosts
  int repetitions = 5;
  int aggregate = 1;  ///< calls of one iteration, in one group of tacc's
  int cycles = 1;     ///< how often all sizes are measured; 0: for ever
  Average average = Average::mean;
  bool reportsCpuTime = false;  ///< in place of the time that passes
  bool perCall = false;         ///< times every call, for percentiles
  double timeout = 0;           ///< seconds that a call may take; 0: as usual
  bool check = true;
  std::vector<taccDataType_t> types;
  std::vector<taccRedOp_t> ops;
  std::vector<int> roots;
  int ranks = 0;
  std::string algorithm;
  bool explains = false;
  bool libraryMemory = false;
  bool smallPages = false;  ///< of private memory, instead of huge ones where there are any
  bool threads = false;
  bool parallelInit = false;  ///< threads join each by itself
  bool registers = false;     ///< private memory is made shared
  int streams = 0;            ///< to which calls are given, in turn; 0: each runs in the calling thread
  bool bound = false;
  int load = 0;          ///< processes that compute meanwhile
  size_t poolBytes = 0;  ///< 0: from the cache size
  std::vector<std::string> peers;
  std::map<std::string, std::vector<std::string>> peerArguments;
  std::string peerDirectory;
  /// The contestant that the others are compared with.
  std::string reference = "tacc";
  /// Hosts to run on instead of this node, and where on them.
  std::optional<tools::ClusterShape> cluster;
  std::string placement = "block";
  std::string jsonFile;
  bool appends = false;  ///< to jsonFile, a line a run
  std::string plotFile;

  /// As --memory names it.
  const char* memoryName() const { return libraryMemory ? "library" : smallPages ? "small-pages" : "private"; }
};

/// Reads the command line of a process that is a rank of `job`, or that starts ranks itself. Prints the usage and
/// exits: with 0 when asked for help, with 2 when something is wrong.
Options parseOptions(int argc, char** argv, const std::optional<Job>& job);

}  // namespace tacc::bench
