// Which plan runs a call over several hosts. The engine runs it (src/engine/net).
#include <algorithm>
#include <utility>

#include "algorithms/registry.hpp"
#include "comm/call_demands.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "core/log.hpp"
#include "core/types.hpp"
#include "engine/net/half_width_run.hpp"
#include "engine/net/plan_run.hpp"
#include "engine/net/streamed_run.hpp"
#include "selection/half_width_choice.hpp"

namespace tacc {

void ClusterCommunicator::runParts(const Call& call) {
  if (call.factor != nullptr)
    return runMultiplied(call, rank(), ranks(), taccSum, converted_, [this](const Call& sum) { runCall(sum); });
  if (call.blocks != nullptr) return runUnequal(call);
  // Their sums are in the order of the ranks.
  if (config().isReproducible && call.streamed != nullptr)
    return runMadeFirst(call, converted_, [this](const Call& sum) { runCall(sum); });
  // Partial sums travel between hosts in the width in which they are summed, so that they are rounded once, unless 16
  // bits are asked for. A streamed sum of 16-bit numbers is meant to move 16 bits, and in the order of the ranks there
  // are no partial sums.
  const bool isOnePass = needsRankOrder(call, config().isReproducible) && !isPrefix(call.collective);
  const bool roundsOnce = isReduction(call.collective) && isHalfWidth(call.type) && call.streamed == nullptr &&
                          call.user == nullptr && !config().halfPartialSums && !isOnePass;
  const bool gathersHalf = roundsOnce && call.collective == Collective::allReduce && gathersHalfWidth(call.count);
  if (roundsOnce && !gathersHalf)
    return runWidened(call, rank(), ranks(), converted_, [this](const Call& sum) { runCall(sum); });
  endpoint_.beginIdle();
  if (node_) node_->announce(signature_);
  if (call.count == 0 && call.collective != Collective::barrier) return;
  if (gathersHalf) return allReduceHalfWidth(call);
  const bool timed = isDynamic() && !call.isInternal;
  if (timed) tuner_.begin();
  runChosen(call);
  if (!timed || !tuner_.end()) return;
  const std::string name = lastAlgorithm_;
  agreeOnTimes();
  lastAlgorithm_ = name;
}

void ClusterCommunicator::agreeOnTimes() {
  const std::span<double> times = tuner_.told();
  runChosen({.collective = Collective::allReduce,
             .send = times.data(),
             .receive = times.data(),
             .count = times.size(),
             .type = taccFloat64,
             .op = tuner_.agreement(),
             .isInternal = true});
  const std::string decision = tuner_.agree();
  if (decision.empty()) return;
  log(LogLevel::info, rank(), "online tuner: {}", decision);
  note(decision);
}

bool ClusterCommunicator::serves(const Algorithm& algorithm, Collective collective, const PlanDemands& demands) {
  return meets(algorithm, selector_.request(collective, 0), demands);
}

const Algorithm& ClusterCommunicator::algorithmFor(const Call& call, int root, std::size_t bytes,
                                                   const PlanDemands& demands) {
  // What a tuning file or measured times say is of the plans that meet none.
  if (demands != PlanDemands{})
    return selector_.choose(call.collective, root, bytes,
                            call.isInternal ? std::string_view() : forced(call.collective, demands), demands);
  const std::string_view route = steered(call);
  if (route.empty() && isDynamic() && !call.isInternal) return tuner_.choose(selector_, call.collective, root, bytes);
  return selector_.choose(call.collective, root, bytes, route);
}

NetworkCall ClusterCommunicator::planned(const Call& call, const Algorithm& algorithm, std::size_t longestBytes,
                                         PlanOrder order, int root) {
  lastAlgorithm_ = algorithm.name;
  return {call, algorithm, selector_.messageBytes(call.collective, longestBytes), order, root};
}

void ClusterCommunicator::runChosen(const Call& call) {
  if (call.collective == Collective::barrier) return barrier();
  const std::size_t bytes = call.count * sizeOf(call.type);
  if (call.streamed != nullptr) return runStreamed(run_, planned(call, algorithmFor(call, 0, bytes), bytes), window_);
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  // A scan, and what is combined in the order of the ranks, goes over them as they are numbered.
  const PlanOrder order = demands.rankOrder || isPrefix(call.collective) ? PlanOrder::ranks : PlanOrder::hosts;
  const int root = isRooted(call.collective) ? run_.ranks().numberOf(call.root, order) : 0;
  runPlan(run_, planned(call, algorithmFor(call, root, bytes, demands), bytes, order, root));
}

/// An allreduce of nothing that matters.
void ClusterCommunicator::barrier() {
  std::uint8_t none = 0;
  runChosen({.collective = Collective::allReduce,
             .send = &none,
             .receive = &none,
             .count = 1,
             .type = taccUint8,
             .op = taccMax,
             .isInternal = true});
}

bool ClusterCommunicator::gathersHalfWidth(std::size_t numbers) {
  const std::size_t bytes = std::min(numbers, halfWidthTogether) * sizeof(float);
  return steered(Collective::allReduce, bytes).empty() && halfWidthPays(selector_, numbers);
}

void ClusterCommunicator::allReduceHalfWidth(const Call& call) {
  runHalfWidth(run_, call, window_, [this](std::size_t numbers) {
    const Algorithm& algorithm = halfWidthAlgorithm(selector_, numbers);
    lastAlgorithm_ = algorithm.name;
    return HalfWidthPlan{algorithm, selector_.messageBytes(Collective::allReduce, numbers * sizeof(float))};
  });
}

/// Of an allgather or a reduce-scatter all ranks know all lengths, once they have told them.
void ClusterCommunicator::runUnequal(const Call& call) {
  endpoint_.beginIdle();
  if (node_) node_->announce(signature_);
  if (call.collective != Collective::allGather && call.collective != Collective::reduceScatter)
    return runUnequalOfPairs(call);
  const bool gathers = call.collective == Collective::allGather;
  const BlockRow& all = gathers ? call.blocks->receive : call.blocks->send;
  const BlockRow& own = gathers ? call.blocks->send : call.blocks->receive;
  runChosen(unequal_.tellLength(own.counts[0]));
  unequal_.compareLengths(call.collective, all);
  lastAlgorithm_ = "";
  if (all.longest() == 0) return;
  const std::size_t size = sizeOf(call.type);
  std::size_t elements = 0;
  for (const std::size_t count : all.counts) elements += count;
  const std::size_t mean = (elements * size + at(ranks()) - 1) / at(ranks());
  const PlanDemands demands = demandsOf(call, config().isReproducible);
  const PlanOrder order = demands.rankOrder || demands.oneRounding ? PlanOrder::ranks : PlanOrder::hosts;
  unequal_.runKnown(planned(call, algorithmFor(call, 0, mean, demands), all.longest() * size, order), all);
}

void ClusterCommunicator::runUnequalOfPairs(const Call& call) {
  const bool toAll = call.collective == Collective::allToAll;
  const int root = toAll ? 0 : run_.ranks().numberOf(call.root, PlanOrder::hosts);
  const std::size_t message = selector_.messageBytes(call.collective, 1);
  const Algorithm& algorithm = selector_.choose(call.collective, root, message, {}, {.straightBlocks = true});
  unequal_.runOfPairs(planned(call, algorithm, 1, PlanOrder::hosts, root));
}

}  // namespace tacc
