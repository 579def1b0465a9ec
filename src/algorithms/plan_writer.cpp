#include "algorithms/plan_writer.hpp"

#include <algorithm>
#include <utility>

namespace tacc {

PlanWriter::PlanWriter(const PlanRequest& request, std::string_view algorithm, int blocks) {
  plan_.request = request;
  plan_.algorithm = algorithm;
  plan_.blocks = blocks;
  plan_.ranks.resize(static_cast<std::size_t>(request.ranks));
}

void PlanWriter::step(int rank, int round, int block, int blockCount, std::vector<Operand> sources,
                      std::vector<Operand> destinations) {
  const bool split = partitionOf(plan_.request.collective) == Partition::split;
  plan_.ranks[static_cast<std::size_t>(rank)].steps.push_back(
      {round, split ? block : 0, blockCount, std::move(sources), std::move(destinations)});
  plan_.rounds = std::max(plan_.rounds, round + 1);
}

void PlanWriter::needScratch(int blocks) { plan_.scratchBlocks = std::max(plan_.scratchBlocks, blocks); }

Plan PlanWriter::finish() {
  const auto earlier = [](const Step& a, const Step& b) { return a.round < b.round; };
  for (RankPlan& rank : plan_.ranks) {
    if (!std::is_sorted(rank.steps.begin(), rank.steps.end(), earlier)) {
      std::stable_sort(rank.steps.begin(), rank.steps.end(), earlier);
    }
  }
  return std::move(plan_);
}

Plan writeCopy(const PlanRequest& request, std::string_view algorithm) {
  PlanWriter writer(request, algorithm);
  writer.step(0, 0, 0, 1, {input(0)}, {output(0)});
  return writer.finish();
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
