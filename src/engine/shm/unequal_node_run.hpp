// The run of a call among the ranks of a host whose blocks have unequal lengths: ranks learn the lengths first. Short
// data comes along with them; else the plan of the same collective runs over blocks of these lengths. A gather of short
// and long blocks has no plan, as those who have given short ones are gone: its long ones are messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/call.hpp"
#include "engine/shm/node_run.hpp"
#include "engine/unequal_exchange.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class UnequalNodeRun {
 public:
  /// As of `run`; `eagerBytes`: of a post.
  UnequalNodeRun(NodeRun& run, const Waiter& waiter, CallExchange& exchange, AreaPages& pages, std::size_t eagerBytes);

  /// What is left to do of a call that has begun.
  enum class Left : std::uint8_t { nothing, messages, plan };
  /// Opens the call and compares the lengths. Nothing is left where there is no data, or it came along, which may
  /// happen if `mayTake`.
  Left begin(const Call& call, std::uint64_t signature, bool mayTake);
  /// Of a gather that begin() left open: this rank's messages, until the next call.
  std::span<const PointToPoint> messages(const Call& call);
  /// Of the longest block of all ranks.
  std::size_t longestBytes() const noexcept { return longest_ * elementBytes_; }

  /// As in NodeRun, of a call that begin() left open.
  LoweringFacts meet(const Call& call, std::uint64_t signature);
  void run(const Call& call, const NodePlan& plan, const PlanDemands& demands);

 private:
  NodeRun& run_;
  AreaPages& pages_;
  UnequalExchange exchange_;
  std::vector<PointToPoint> messages_;
  std::size_t longest_ = 0;       // of the call that goes on, in elements
  std::size_t elementBytes_ = 1;  // of the same
  std::vector<std::byte> input_;  // of an alltoall in place
};

}  // namespace tacc
