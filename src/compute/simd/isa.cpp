#include "compute/simd/isa.hpp"

#include <algorithm>
#include <string>

#include "compute/simd/cpu_targets.hpp"
#include "compute/simd/targets.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/instruction_sets.hpp"

namespace tacc {
namespace {

// Which of HWY_SCALAR and HWY_EMU128 there is depends on the compiler.
#define TACC_ROW(name, targets, kernels) {#name, targets, #kernels},
constexpr InstructionSet instructionSets[] = {TACC_INSTRUCTION_SETS(TACC_ROW)};
#undef TACC_ROW

template <class Sets>
std::string joinNames(const Sets& sets) {
  std::string text;
  for (const auto& one : sets) text += (text.empty() ? "" : ", ") + std::string(one.name);
  return text;
}

}  // namespace

std::span<const InstructionSet> instructionSetsFrom(std::string_view widest) {
  const std::span<const InstructionSet> all = instructionSets;
  if (widest == "best") return all;
  const auto row = std::ranges::find(all, widest, &InstructionSet::name);
  if (row != all.end()) return {row, all.end()};
  fail(taccInvalidArgument, "TACC_ISA=\"{}\" is not an instruction set; allowed are {}, best", widest, joinNames(all));
}

std::vector<Isa> availableIsas() {
  const std::int64_t always = instructionSets[std::size(instructionSets) - 1].targets;
  const std::int64_t targets = (findCpuTargets() | always) & HWY_TARGETS;
  std::vector<Isa> isas;
  for (const InstructionSet& one : instructionSets) {
    if (one.targets & targets) isas.push_back({one.name, one.targets & targets});
  }
  if (isas.empty()) fail(taccSystemError, "This CPU has none of the instruction sets that tacc was compiled for");
  return isas;
}

Isa bestIsa(std::string_view widest) {
  const std::vector<Isa> available = availableIsas();
  if (widest == "best") return available.front();
  std::span<const InstructionSet> allowed = instructionSetsFrom(widest);
  while (allowed.front().targets == 0) allowed = allowed.subspan(1);
  if ((allowed.front().targets & HWY_TARGETS) == 0) {
    fail(taccInvalidArgument, "TACC_ISA={} is not for this kind of CPU; here it may be {} or best", widest,
         joinNames(available));
  }
  for (const InstructionSet& one : allowed) {
    const auto found = std::ranges::find(available, one.name, &Isa::name);
    if (found != available.end()) return *found;
  }
  fail(taccInvalidArgument, "TACC_ISA={} leaves nothing that this CPU has; here it may be {} or best", widest,
       joinNames(available));
}

Isa chooseIsa() { return bestIsa(processEnvironment().isa); }

}  // namespace tacc
