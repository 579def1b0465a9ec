// Measuring the network among the ranks that a launcher has started.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "topology/model/topology.hpp"

namespace tacc {

struct ProbedNetwork {
  int rank;  // of this process; all have the same topology
  std::shared_ptr<const Topology> topology;
  std::string transport;  // what carried the messages
};

/// Joins the others, who do the same, and measures what no source tells, whatever is saved of it. Throws Error where no
/// launcher started this process, and where all ranks are on one host. Rank 0 calls `prepare` before it joins: what it
/// throws ends this process before anything is measured.
ProbedNetwork probeNetwork(const std::function<void()>& prepare);

/// Keeps it where later jobs on these hosts look for it. The file's path.
std::string keep(const ProbedNetwork& network);

/// To be called before: throws where keep() could not write.
void requireKeepable();

/// Writes it as a file for TACC_TOPO_FILE.
void writeTo(const std::string& path, const ProbedNetwork& network);

}  // namespace tacc
