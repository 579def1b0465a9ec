#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"
#include "coordinator/team.hpp"
#include "support/virtual_hosts.hpp"
#include "worker/messages.hpp"

namespace tacc::bench {

/// Those who are measured against each other.
struct Contest {
  Team* reference = nullptr;  ///< with whom the peers are compared: tacc, unless --reference says otherwise
  std::vector<Team*> peers;
  Team* bound = nullptr;                       ///< may be absent
  const tools::VirtualHosts* hosts = nullptr;  ///< of all of them; null on one node
};

/// Told what is being done, for the display of progress.
using Progress = std::function<void(const std::string&)>;

/// Measures one call: every repetition lets each contestant run a block of iterations in turn, while all others sleep,
/// so that a slow phase of the machine meets all of them, and each runs after each of the others equally often
/// (support/turns.hpp). What counts is the median over the repetitions of the mean
/// over iterations and ranks.
Row measure(const Contest& contest, const Options& options, const Task& task, const Progress& progress);

}  // namespace tacc::bench
