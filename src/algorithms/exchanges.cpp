#include "algorithms/exchanges.hpp"

#include <utility>

#include "algorithms/plan_writer.hpp"
#include "core/error.hpp"

namespace tacc {

bool goesStraight(const Exchanges& exchanges) noexcept {
  int hops = 0;
  for (const Phase& phase : exchanges.phases) {
    if (std::holds_alternative<Copy>(phase)) continue;
    if (!std::holds_alternative<Star>(phase) && !std::holds_alternative<EveryToEvery>(phase)) return false;
    ++hops;
  }
  return hops == 1;
}

Exchange shiftBy(int shift, int ranks, int blocks, bool combines) {
  Exchange exchange;
  exchange.to = [=](int rank) { return wrap(rank + shift, ranks); };
  exchange.blocks = blocks;
  exchange.combines = combines;
  return exchange;
}

Exchanges exchangesOnTree(const PlanRequest& request, Tree tree) {
  const auto shared = std::make_shared<const Tree>(std::move(tree));
  const auto goes = [&](bool isDown) {
    TreeExchange exchange;
    exchange.trees = {{shared}};
    exchange.isDown = isDown;
    return exchange;
  };
  /// What lies below an edge, a block for each place, one message after the other.
  const auto parts = [&](bool isDown, bool isCutAtRoot) {
    TreeExchange exchange = goes(isDown);
    exchange.isPerRank = exchange.oneByOne = true;
    exchange.isCutAtRoot = isCutAtRoot;
    return exchange;
  };
  TreeExchange up = goes(false), down = goes(true);
  up.combines = isReduction(request.collective);
  switch (request.collective) {
    case Collective::allReduce:
      return {1, {up, down}};
    case Collective::broadcast:
      return {1, {down}};
    case Collective::reduce:
      return {1, {up}};
    case Collective::gather:
      return {1, {parts(false, true)}};
    case Collective::allGather:
      down.blocks = request.ranks;
      return {1, {parts(false, false), down}};
    case Collective::reduceScatter:
      up.blocks = request.ranks;
      return {1, {up, parts(true, false)}};
    case Collective::scatter:
      return {1, {parts(true, true)}};
    case Collective::allToAll:
    case Collective::scan:
    case Collective::exscan:
    case Collective::barrier:
      break;
  }
  fail(taccInternalError, "no tree serves {}", nameOf(request.collective));
}

}  // namespace tacc
