// Ranks as processes that a test may kill and stop, and what each of them saw, in memory that outlives them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "support/settings.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

/// What one rank tells the test. Lies in memory shared with the children.
struct Report {
  std::atomic<int> stage;  // 1: at the call of interest, 2: done
  taccResult_t result;     // of the call of interest
  taccResult_t later;      // of the same call once more
  taccResult_t async;      // taccCommGetAsyncError after the call
  taccResult_t destroyed;  // of taccCommDestroy
  double start;            // of the call, on the clock of now()
  double end;
  double laterSeconds;  // that the later call took
  double value;         // whatever the test wants
  char message[1024];   // taccGetLastError after the call

  void setMessage(const char* text);
};

/// Seconds on a clock that all processes share.
double now();

/// A configuration with these time-outs in seconds.
taccConfig_t configOf(double initTimeout, double operationTimeout);

class VirtualCluster;

class Team {
 public:
  using Body = std::function<void(const taccUniqueId& id, int rank, Report& report)>;

  /// Forks `ranks` processes that run `body`. Those whose rank is `absent` are left out.
  Team(int ranks, const Body& body, int absent = -1);
  /// Rank r on the virtual host hosts[r], hosts counted from 1. Rank 0 makes the id there.
  Team(const VirtualCluster& cluster, const std::vector<int>& hosts, const Body& body);
  /// Kills and collects whoever is left.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Report& report(int rank) const { return reports_[rank]; }
  int ranks() const { return static_cast<int>(children_.size()); }
  void signal(int rank, int number) const;
  /// Waits until every rank has reached `stage`; a failure of the test after `seconds`.
  void awaitStage(int stage, double seconds = 20);
  /// Waits for the process of each rank except `except`, and expects each to end well. Hangs are killed and are
  /// failures.
  void join(int except = -1, double seconds = 20);

 private:
  void start(int ranks, int absent, const std::function<int(int rank)>& child);

  std::vector<pid_t> children_;  // 0: absent or collected
  Report* reports_;
};

/// A call on a communicator, for one rank.
using RankCall = std::function<taccResult_t(taccComm_t comm, int rank)>;

/// Joins with `config`; expects success. Null, with a failure of the test, otherwise.
taccComm_t joinTeam(const taccUniqueId& id, int ranks, int rank, const taccConfig_t& config);

/// Makes `call` and reports on it; then once more, asks for the asynchronous error and destroys the communicator.
void reportCall(taccComm_t comm, int rank, const RankCall& call, Report& report);

/// Tells the test that this rank is ready and sleeps until it is killed.
[[noreturn]] void waitToBeKilled(Report& report);

}  // namespace tacc::test
