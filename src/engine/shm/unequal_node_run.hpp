// The run of a call among the ranks of a host whose blocks have unequal lengths: all ranks learn all lengths first.
// Short data comes along with them; else the plan of the same collective runs over blocks of these lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/shm/node_run.hpp"
#include "engine/unequal_exchange.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class UnequalNodeRun {
 public:
  /// As of `run`; `eagerBytes`: of a post.
  UnequalNodeRun(NodeRun& run, const Waiter& waiter, CallExchange& exchange, AreaPages& pages, std::size_t eagerBytes);

  /// Opens the call and compares the lengths. True where it is over with that, as there is no data, or it came along,
  /// which may happen if `mayTake`.
  bool begin(const Call& call, std::uint64_t signature, bool mayTake);
  /// Of the longest block of all ranks.
  std::size_t longestBytes() const noexcept { return longest_ * elementBytes_; }

  /// As in NodeRun, of a call that begin() left open.
  LoweringFacts meet(const Call& call, std::uint64_t signature);
  void run(const Call& call, const NodePlan& plan, const PlanDemands& demands);

 private:
  NodeRun& run_;
  const Waiter& waiter_;
  AreaPages& pages_;
  UnequalExchange exchange_;
  std::size_t longest_ = 0;       // of the call that goes on, in elements
  std::size_t elementBytes_ = 1;  // of the same
  std::vector<std::byte> input_;  // of an alltoall in place
};

}  // namespace tacc
