// What a call would take, found by running its plan message by message. Exact in the model, and slow: for up to some
// hundred ranks; cost_model.hpp has the quick answer.
#pragma once

#include <cstddef>
#include <optional>

#include "algorithms/registry.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/rank_classes.hpp"

namespace tacc {

/// How the engine cuts a call (engine/net/network_run.hpp).
struct CostCall {
  double bytes = 0;       // split: of the vector; stack: of one block
  double chunkBytes = 0;  // of these; 0: one chunk
  int window = 4;         // chunks under way together
};

/// Number of chunks of a call, at least one.
int chunksOf(const CostCall& call) noexcept;

/// Seconds until every rank is done.
///
/// Every chunk goes through the steps of a rank in order: a step begins when its messages are there, takes the rank's
/// CPU for the overhead of its messages and for what it combines or copies, and then its messages start. Chunks of a
/// rank take turns on the CPU, the oldest first; a chunk begins when the one that began `window` earlier is over.
/// Messages between the same two ranks go one after the other; those of different pairs that cross a link share it
/// (link_shares.hpp): ports of ranks and uplinks of groups, each direction by itself. A message has arrived alpha after
/// its last byte left.
double simulate(const Plan& plan, const CostMap& map, const CostCall& call);

/// The same for calls of any length, in the time that few chunks take, five windows at least: those in the middle of a
/// long call go at one pace. Within 2 % of simulate() for 99 of 100 plans and calls of 40 chunks
/// (tests/selection/regret_test.cpp).
/// Takes the work from `budget`: all that happens to messages, also that one goes faster or slower because of another;
/// a million takes some 25 ms. When nothing is left, what has been played so far tells of the rest. nullopt: that is
/// less than two windows of chunks.
std::optional<double> simulateLong(const Plan& plan, const CostMap& map, const CostCall& call, double& budget);

/// The same, of one rank of each class for all that are alike: of some thousand ranks too, where these are few. A plan
/// of which more steps have to be written than `budget` is not played.
std::optional<double> simulateLong(const Algorithm& algorithm, const PlanRequest& request, const RankClasses& classes,
                                   const CostMap& map, const CostCall& call, double& budget);

/// The same, from what the plan exchanges.
std::optional<double> simulateLong(const Exchanges& exchanges, const PlanRequest& request, const RankClasses& classes,
                                   const CostMap& map, const CostCall& call, double& budget);

}  // namespace tacc
