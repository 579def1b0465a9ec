// What sources say of the topology, and what comes of it when they are put together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc {

/// What one source knows. What it does not know is left empty in the topology.
struct Finding {
  std::string source;  // a name from the registry
  std::string origin;  // where it has it from: a file, a variable
  Topology topology;
  bool isOfAnyHost =
      false;  // of one host that nobody named: its inside is that of all hosts of which nothing else tells

  /// "slurm (/etc/slurm/topology.conf)".
  std::string who() const { return origin.empty() ? source : source + " (" + origin + ")"; }
};

/// One thing that is known, and who said it.
struct Fact {
  std::string what, value, who;
  bool operator==(const Fact&) const = default;
};

struct Discovery {
  Topology topology;
  std::vector<Fact> facts;
  std::vector<std::string> contradictions;  // sentences that name both sources and which one won
};

/// The findings in the order of their weight: the first that groups hosts gives hosts and levels; a figure or a node's
/// description comes from the first that has it, for levels with the same groups. What a later one says otherwise is
/// reported. Without findings: an empty topology. A pure function: the same findings give the same result everywhere.
Discovery merge(std::span<const Finding> findings);

}  // namespace tacc
