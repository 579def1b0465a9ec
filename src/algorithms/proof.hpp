// The parts of the proof that verify() puts together. Internal to the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/plan_analysis.hpp"
#include "algorithms/verifier.hpp"

namespace tacc::proof {

/// Every step by itself: operands, indices, peers, order of rounds.
void checkForm(const Plan& plan);

using StepRef = PlanAnalysis::StepRef;

/// The blocks of all buffers of all ranks, numbered; aliased blocks have one number.
class Cells {
 public:
  Cells(const Plan& plan, bool inPlace);
  int count() const noexcept { return count_; }
  /// Block `index` of a buffer; not for peers.
  int cellOf(int rank, Operand::Kind kind, int index) const noexcept;

 private:
  struct Bases {
    int output;
    int scratch;
    int input;
  };
  const Plan& plan_;
  bool inPlace_;
  std::vector<Bases> bases_;
  int count_ = 0;
};

/// Conflicts within rounds, contents of all outputs. Fills in reductionOrder. Of every step, numbered over all ranks:
/// whether it combines the last contributions to its blocks.
std::vector<bool> proveDataflow(const Plan& plan, const PlanAnalysis& analysis, const Cells& cells,
                                Certificate& certificate);

/// Fills in the counts and the longest chain.
void measureTraffic(const Plan& plan, const PlanAnalysis& analysis, Certificate& certificate);

/// How many messages may be overwritten at their source before they have been taken (see Certificate).
std::uint64_t countOverwritten(const Plan& plan, const PlanAnalysis& analysis, const Cells& cells);

}  // namespace tacc::proof
