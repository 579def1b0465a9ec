#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "launched/agent.hpp"
#include "tacc/tacc.h"

namespace tacc::bench {

/// The processes of tacc_bench that a launcher has started, connected by a communicator on which nothing is measured.
/// Errors are std::runtime_error with the library's sentence. One thread.
class Control {
 public:
  /// Joins the others: as the launcher says where they meet, or, where their MPI is measured too, by an id that it
  /// brings to all: it is the only one that may speak with its launcher. `agent`: of this process, before any order.
  Control(const Options& options, Agent& agent);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Ranks on this one's host, itself included.
  int ranksHere() const { return ranksHere_; }

  /// Collective: what rank 0 gives. Waits for it as long as that takes, asleep.
  std::string broadcast(const std::string& text);
  /// Collective: on rank 0 what every rank gives, by rank; on the others nothing.
  std::vector<std::string> gather(const std::string& text);

 private:
  taccComm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
  int ranksHere_ = 1;
};

}  // namespace tacc::bench
