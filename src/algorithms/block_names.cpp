#include "algorithms/block_names.hpp"

#include <algorithm>
#include <optional>

#include "algorithms/plan_analysis.hpp"

namespace tacc {
namespace {

/// Nothing for scratch and messages, which have no names.
std::optional<int> nameOfOperand(const PlanRequest& request, int rank, const Operand& operand) noexcept {
  const bool isInput = operand.kind == Operand::Kind::input;
  if (!isInput && operand.kind != Operand::Kind::output) return std::nullopt;
  // A block of a rank's own is named after that rank; one of a stack for all ranks after the other rank, or after both.
  if (isGathering(request.collective)) return isInput ? rank : operand.index;
  if (isScattering(request.collective)) return isInput ? operand.index : rank;
  if (request.collective != Collective::allToAll) return std::nullopt;
  return isInput ? rank * request.ranks + operand.index : operand.index * request.ranks + rank;
}

}  // namespace

int nameOfBlock(const PlanRequest& request, int rank, const Step& step) noexcept {
  // Blocks of an output come from ranks that follow one another, so their names do not.
  if (request.collective == Collective::allToAll && step.blockCount > 1) return -1;
  int name = -1;
  for (const std::vector<Operand>* operands : {&step.sources, &step.destinations})
    for (const Operand& operand : *operands) {
      if (operand.kind == Operand::Kind::scratch) return -1;
      const std::optional<int> own = nameOfOperand(request, rank, operand);
      if (!own) continue;
      if (name >= 0 && name != *own) return -1;
      name = *own;
    }
  return name;
}

bool verifyNames(const Plan& plan) {
  if (partitionOf(plan.request.collective) != Partition::stack) return false;
  const PlanAnalysis analysis(plan);
  std::vector<int> names;
  names.reserve(analysis.steps.size());
  for (const PlanAnalysis::StepRef& ref : analysis.steps)
    names.push_back(nameOfBlock(plan.request, ref.rank, *ref.step));
  if (std::ranges::find(names, -1) != names.end()) return false;
  return std::ranges::all_of(analysis.messages, [&](const PlanAnalysis::Message& message) {
    return names[static_cast<std::size_t>(message.sendStep)] == names[static_cast<std::size_t>(message.receiveStep)];
  });
}

}  // namespace tacc
