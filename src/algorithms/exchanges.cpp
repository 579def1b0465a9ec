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
  if (!isServedByTrees(request.collective)) fail(taccInternalError, "no tree serves {}", nameOf(request.collective));
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
  const CollectiveShape& shape = shapeOf(request.collective);
  const bool isRooted = tacc::isRooted(request.collective);
  Exchanges all{1, {}};
  if (shape.send.usedBy != UsedBy::root) {  // to the tree's root
    TreeExchange up = goes(false);
    up.combines = isReduction(request.collective);
    if (isScattering(request.collective)) up.blocks = request.ranks;
    all.phases.emplace_back(isGathering(request.collective) ? parts(false, isRooted) : up);
  }
  if (shape.receive.usedBy != UsedBy::root) {  // and from there to all
    TreeExchange down = goes(true);
    if (isGathering(request.collective)) down.blocks = request.ranks;
    all.phases.emplace_back(isScattering(request.collective) ? parts(true, isRooted) : down);
  }
  return all;
}

}  // namespace tacc
