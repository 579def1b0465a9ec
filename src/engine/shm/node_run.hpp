// The run of a call among the ranks of a host.
//
// A short call goes the eager route. Another is one plan: the ranks meet in the call and learn how they reach each
// other's memory, then its plan is chosen, by who makes the calls, and runs. The root of a call that repeats the one
// before does not wait for the meeting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/plan_demands.hpp"
#include "algorithms/registry.hpp"
#include "core/call.hpp"
#include "core/environment.hpp"
#include "core/stopwatch.hpp"
#include "engine/schedule.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "engine/shm/call_exchange.hpp"
#include "engine/shm/copy_policy.hpp"
#include "engine/shm/eager.hpp"
#include "engine/shm/executor.hpp"
#include "engine/shm/post_policy.hpp"
#include "engine/shm/program_cache.hpp"
#include "engine/shm/timed_rows.hpp"
#include "transports/shm/area_pages.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/page_pipes.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

/// The plan that is chosen for a call.
struct NodePlan {
  const Algorithm* algorithm;
  const PlanRequest* request;               // lives as long as the call
  int layout = 0;                           // number of the groups in the request
  const std::vector<int>* order = nullptr;  // the rank at each place; null: the request's ranks are the communicator's
  ScheduleLimits limits{};                  // of how it is cut
};

class NodeRun {
 public:
  /// `exchange`, `buffers` and `pages` are this rank's, as is `waiter`; `processes[r]`: rank r's pid.
  NodeRun(const NodeSegment& segment, int rank, int ranks, Waiter& waiter, CallExchange& exchange,
          BufferExchange& buffers, AreaPages& pages, std::vector<int> processes, CmaMode cma);

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  /// Of a call that goes the eager route. `posted`: bytes of the largest post, on any rank.
  EagerCall eagerCallOf(const Call& call, std::size_t posted) const;
  /// Runs it to its end.
  void runEager(EagerCall& call, std::uint64_t signature);
  /// The same where posts fit a line.
  void runShort(const EagerCall& call, std::uint64_t signature) { eager_.runShort(call, signature); }

  /// Opens a call that is one plan. What all ranks know afterwards, equal on all of them.
  LoweringFacts meet(const Call& call, std::uint64_t signature);
  /// Runs it to its end. False where the plan would round sums of 16-bit numbers more than once: nothing is done then.
  bool run(const Call& call, const NodePlan& plan, const PlanDemands& demands);

  /// The same of calls whose blocks have unequal lengths, `blocks` by rank, of which the longest has `longest`
  /// elements. `mine`: this rank's buffers.
  LoweringFacts meet(const Call& call, std::uint64_t signature, const UserBuffers& mine,
                     const std::vector<UnequalBlocks>& blocks, std::size_t longest);
  void run(const Call& call, const NodePlan& plan, const PlanDemands& demands, const std::vector<UnequalBlocks>& blocks,
           std::size_t longest);

  /// After a call that has failed, of which all ranks have been told, as SharedCopies::abandon().
  std::string abandonCopies() { return executor_.abandonCopies(); }

 private:
  /// What the next call may be a repetition of.
  struct Repeated {
    Collective collective{};
    int root = -1;
    std::size_t count = 0, size = 0;
    CopyPolicyKind kind{};
    LoweringFacts facts;
    CopyPolicy policy;
    const CachedProgram* program = nullptr;  // null: of none
    std::uint32_t following = 0;             // calls like it right before, since all ranks met
  };
  /// Runs a call that goes one way, and learns how its posts are best written.
  void runOneWay(EagerCall& call);
  /// Takes the times of the last row of these that was timed, if all ranks have told theirs and none told another's
  /// since.
  void judgePosts() noexcept;
  /// `checksPipes`: the pipes are looked at before the ranks meet.
  void open(std::uint64_t signature, const UserBuffers& mine, const std::function<UserBuffers(int)>& buffersOf,
            bool checksPipes, const BufferExchange::Ahead& ahead = {});
  /// Whether it is to be looked whether the pipes are still open: now and then, in calls of a length that may go
  /// through them. A program that closes what is the library's gets an error in other calls.
  bool checksPipes(Collective collective, std::size_t bytes, bool inPlace) noexcept;
  CopyPolicyKind kindWithPipes() const noexcept;
  /// Whether a call in which all data come from its root is as the last planned one, so that the root need not wait for
  /// the others: they know all that it would tell them.
  bool isRepeated(const Call& call, const UserBuffers& mine) const noexcept;
  /// Chooses the policy of a call that is open, and with it the last of its facts. `bytes`: of a rank's block, the
  /// longest one.
  void usePolicy(Collective collective, CopyPolicyKind kind, std::size_t bytes);
  CopyPolicyKind kindOf(Access input, Access output) const noexcept;
  CachedProgram& programOf(const NodePlan& plan, const PlanDemands& demands);
  void execute(CachedProgram& cached, const NodePlan& plan, const ElementWork& work);

  NodeSegment segment_;
  int rank_;
  int ranks_;
  CallExchange& exchange_;
  BufferExchange& buffers_;
  AreaPages& pages_;
  CmaMode cma_;
  EagerPath eager_;
  PagePipes pipes_;
  Executor executor_;
  ProgramCache programs_;
  CopyPolicyTuner eagerPolicies_;    // this rank's own: how it writes its posts changes nothing for the others
  PostPolicyTuner postPolicies_;     // the same, of calls that go one way
  TimedRows timedRows_;              // of these
  Stopwatch postWatch_;              // since the first of the row that goes on
  CopyPolicyTuner plannedPolicies_;  // the same state on all ranks
  unsigned largeCalls_ = 0;          // so far
  float lastSeconds_ = 0;            // of this rank's last planned call
  CallBuffers places_;               // of the call that goes on
  LoweringFacts facts_;              // the same
  CopyPolicy policy_;                // the same
  bool hasPipes_ = false;            // the same: between all ranks
  bool isAhead_ = false;             // the same: the root did not wait for the others
  Repeated last_;                    // the last planned call
};

}  // namespace tacc
