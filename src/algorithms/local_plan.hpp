// The part of a plan that one rank runs, without the steps of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "algorithms/plan.hpp"

namespace tacc {

/// The steps of one rank in little memory. A ring over thousands of ranks has tens of thousands of steps, each like the
/// one before it but for its round and its block: a run of them takes the place of two.
class StepList {
 public:
  /// Adds a step behind the others. Cost: that of its operands.
  void append(const Step& step);

  std::size_t size() const noexcept { return size_; }
  int lastRound() const noexcept { return lastRound_; }  // of all steps; -1: there is none
  /// No step stands behind one of a later round.
  bool isInOrder() const noexcept { return inOrder_; }

  /// Calls visit(step) for every one in turn; the step is the caller's until visit returns.
  template <class Visit>
  void forEach(const Visit& visit) const {
    Step step{};
    for (const Run& run : runs_) {
      for (std::int32_t i = 0; i < run.count; ++i) {
        load(run, i, step);
        visit(static_cast<const Step&>(step));
      }
    }
  }

 private:
  /// `count` steps; from each to the next, round, block and operands grow by the same numbers.
  struct Run {
    std::int32_t round, block, blockCount;
    std::int32_t roundStride, blockStride;
    std::int32_t count;
    std::uint32_t operands;  // the first one's place; sources, then destinations
    std::uint32_t strides;   // of the operands, in a run of two steps and more
    std::int32_t sources, destinations;
    bool completes;
  };

  bool isLike(const Run& run, const Step& step) const;
  bool goesOn(Run& run, const Step& step);
  const Operand& operandOf(const Step& step, std::size_t i) const;
  void load(const Run& run, std::int32_t i, Step& step) const;

  // Deques never hold twice what is in them, as a vector does while it grows.
  std::deque<Run> runs_;
  std::deque<Operand> operands_;
  std::deque<std::int32_t> strides_;
  std::size_t size_ = 0;
  int lastRound_ = -1;
  bool inOrder_ = true;
};

struct LocalPlan {
  PlanRequest request;
  std::string algorithm;
  int rank = 0;
  int blocks = 1;         // as in Plan
  int scratchBlocks = 0;  // that this rank needs
  StepList steps;         // in order of rounds
};

/// What `rank` runs of `plan`.
LocalPlan localPlanOf(const Plan& plan, int rank);

}  // namespace tacc
