#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/team.hpp"

namespace tacc::bench {

/// A line to all agents of a job, each of which answers "ok ..." or "error MESSAGE":
///   start NAME                  this rank of the contestant; answered by PID HOST [SECRET]
///   tell NUMBER SECONDS LINE    LINE to the NUMBERth that was started, with so much patience; answered as it does
///   end                         the job is over; has no answer
inline constexpr const char* startOrder = "start";
inline constexpr const char* tellOrder = "tell";
inline constexpr const char* endOrder = "end";

/// One process of a job: starts its rank of each contestant beside itself and hands orders on to it. A process beside
/// it, because MPIs want one that is theirs alone, and so that a rank which dies can be told of.
class Agent {
 public:
  /// `options` outlive it.
  explicit Agent(const Options& options) : options_(options), listener_(false) {}

  /// Does what `order` says, endOrder excepted.
  std::string obey(const std::string& order);

  /// Before any order, on all ranks: starts the MPI that is the peer, and lets it bring rank 0's word to all. Throws
  /// std::runtime_error.
  std::string shareByPeer(const std::string& peer, const std::string& word);

 private:
  std::string start(const std::string& name);
  std::unique_ptr<Team> startRank(const std::string& name);

  const Options& options_;
  Listener listener_;
  std::map<std::string, std::unique_ptr<Team>> early_;  // started before an order said so
  std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace tacc::bench
