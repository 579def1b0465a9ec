#include "algorithms/local_plan.hpp"

#include <algorithm>

namespace tacc {

void StepList::append(const Step& step) {
  inOrder_ = inOrder_ && step.round >= lastRound_;
  lastRound_ = std::max(lastRound_, step.round);
  ++size_;
  if (!runs_.empty() && isLike(runs_.back(), step) && goesOn(runs_.back(), step)) return;
  runs_.push_back({step.round, step.block, step.blockCount, 0, 0, 1, static_cast<std::uint32_t>(operands_.size()), 0,
                   static_cast<std::int32_t>(step.sources.size()), static_cast<std::int32_t>(step.destinations.size()),
                   step.completes});
  operands_.insert(operands_.end(), step.sources.begin(), step.sources.end());
  operands_.insert(operands_.end(), step.destinations.begin(), step.destinations.end());
}

bool StepList::isLike(const Run& run, const Step& step) const {
  if (run.blockCount != step.blockCount || run.completes != step.completes ||
      static_cast<std::size_t>(run.sources) != step.sources.size() ||
      static_cast<std::size_t>(run.destinations) != step.destinations.size())
    return false;
  const std::size_t operands = step.sources.size() + step.destinations.size();
  for (std::size_t i = 0; i < operands; ++i)
    if (operands_[run.operands + i].kind != operandOf(step, i).kind) return false;
  return true;
}

/// The second step of a run says how it goes on; those after it must fit.
bool StepList::goesOn(Run& run, const Step& step) {
  const std::size_t operands = step.sources.size() + step.destinations.size();
  const auto grown = [&](std::size_t i) { return operandOf(step, i).index - operands_[run.operands + i].index; };
  if (run.count == 1) {
    run.strides = static_cast<std::uint32_t>(strides_.size());
    run.roundStride = step.round - run.round;
    run.blockStride = step.block - run.block;
    for (std::size_t i = 0; i < operands; ++i) strides_.push_back(grown(i));
  } else {
    if (step.round != run.round + run.count * run.roundStride || step.block != run.block + run.count * run.blockStride)
      return false;
    for (std::size_t i = 0; i < operands; ++i)
      if (grown(i) != run.count * strides_[run.strides + i]) return false;
  }
  ++run.count;
  return true;
}

const Operand& StepList::operandOf(const Step& step, std::size_t i) const {
  return i < step.sources.size() ? step.sources[i] : step.destinations[i - step.sources.size()];
}

void StepList::load(const Run& run, std::int32_t i, Step& step) const {
  step.round = run.round + i * run.roundStride;
  step.block = run.block + i * run.blockStride;
  step.blockCount = run.blockCount;
  step.completes = run.completes;
  const auto take = [&](std::vector<Operand>& operands, std::size_t first, std::int32_t count) {
    operands.clear();
    for (std::size_t k = first; k < first + static_cast<std::size_t>(count); ++k) {
      Operand operand = operands_[run.operands + k];
      if (run.count > 1) operand.index += i * strides_[run.strides + k];
      operands.push_back(operand);
    }
  };
  take(step.sources, 0, run.sources);
  take(step.destinations, static_cast<std::size_t>(run.sources), run.destinations);
}

LocalPlan localPlanOf(const Plan& plan, int rank) {
  LocalPlan local{plan.request, plan.algorithm, rank, plan.blocks, plan.scratchBlocks, {}};
  for (const Step& step : plan.ranks[static_cast<std::size_t>(rank)].steps) local.steps.append(step);
  return local;
}

}  // namespace tacc
