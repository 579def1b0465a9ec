// What only a host itself can tell of where it stands. Each host gathers its own; a communicator exchanges them as
// text, so that every rank puts the same together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model/node_description.hpp"

namespace tacc {

/// A card of a Slingshot network.
struct SlingshotCard {
  std::string mac;
  double bytesPerSecond = 0;  // of its link, each way; 0: unknown
  bool operator==(const SlingshotCard&) const = default;
};

struct HostClues {
  std::string host;
  std::string cname;                 // Cray XT, XE, XC: c0-0c0s0n0
  std::string xname;                 // HPE Cray EX: x1000c0s0b0n0
  std::vector<SlingshotCard> cards;  // in the order of their names
  std::string slurmAddress;          // SLURM_TOPOLOGY_ADDR
  std::string slurmPattern;          // SLURM_TOPOLOGY_ADDR_PATTERN
  std::string slurmPartition;        // SLURM_JOB_PARTITION
  std::optional<NodeDescription> node;
  bool operator==(const HostClues&) const = default;
};

/// Where a source looks. Tests put another machine there.
struct Surroundings {
  std::string root;  // stands before every absolute path; empty: the machine itself
  /// A variable of the environment; empty if it is not set.
  std::function<std::string(const std::string&)> variable;

  /// The process's own environment and the machine's own files.
  static Surroundings here();
};

/// The clues of the host that this runs on. `withNode`: ask hwloc what is inside, which takes milliseconds.
HostClues gatherClues(const Surroundings& surroundings, bool withNode);

/// A few lines of text, and back. Throws Error (taccInvalidArgument) for other text.
std::string cluesToText(const HostClues& clues);
HostClues cluesFromText(std::string_view text);

}  // namespace tacc
