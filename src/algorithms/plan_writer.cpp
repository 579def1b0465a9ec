#include "algorithms/plan_writer.hpp"

#include <algorithm>
#include <utility>

namespace tacc {

PlanWriter::PlanWriter(const PlanRequest& request, std::string_view algorithm, int rank)
    : plan_{request, std::string(algorithm), rank, 1, 0, {}},
      isSplit_(partitionOf(request.collective) == Partition::split) {}

void PlanWriter::step(int round, int block, int blockCount, std::vector<Operand> sources,
                      std::vector<Operand> destinations, Sum sum) {
  const bool completes = sum == Sum::complete && sources.size() > 1;
  plan_.steps.append({round, isSplit_ ? block : 0, blockCount, std::move(sources), std::move(destinations), completes});
}

void PlanWriter::needScratch(int blocks) { plan_.scratchBlocks = std::max(plan_.scratchBlocks, blocks); }

LocalPlan PlanWriter::finish() {
  if (!plan_.steps.isInOrder()) {
    std::vector<Step> steps;
    steps.reserve(plan_.steps.size());
    plan_.steps.forEach([&](const Step& step) { steps.push_back(step); });
    std::ranges::stable_sort(steps, {}, &Step::round);
    plan_.steps = {};
    for (const Step& step : steps) plan_.steps.append(step);
  }
  return std::move(plan_);
}

std::vector<Operand> othersThan(int rank, int p) {
  std::vector<Operand> peers;
  peers.reserve(static_cast<std::size_t>(p));
  for (int i = 1; i < p; ++i) peers.push_back(peer(wrap(rank + i, p)));
  return peers;
}

std::vector<Operand> allInRankOrder(int rank, int p, Operand own) {
  std::vector<Operand> sources;
  sources.reserve(static_cast<std::size_t>(p));
  for (int q = 0; q < p; ++q) sources.push_back(q == rank ? own : peer(q));
  return sources;
}

std::vector<Operand> lowerFirst(int rankA, Operand a, int rankB, Operand b) {
  if (rankA < rankB) return {a, b};
  return {b, a};
}

}  // namespace tacc
