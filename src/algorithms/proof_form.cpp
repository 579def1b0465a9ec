// The form of a plan: what can be said about every step by itself.
#include <algorithm>
#include <array>

#include "algorithms/proof.hpp"
#include "core/error.hpp"

namespace tacc::proof {
namespace {

// Limits that only a damaged file meets; they keep its proof from filling the memory.
constexpr std::int64_t maxCells = std::int64_t{1} << 27;
constexpr int maxRounds = 1 << 24;

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) {
  fail(taccInvalidArgument, format, std::forward<Args>(args)...);
}

void checkHead(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const std::string_view collective = nameOf(request.collective);
  const bool plainName = !plan.algorithm.empty() && std::all_of(plan.algorithm.begin(), plan.algorithm.end(),
                                                                [](char c) { return c > ' ' && c <= '~'; });
  if (!plainName) reject("plan: the algorithm's name must be one word of printable characters");
  if (request.collective == Collective::barrier) reject("plan {}: a barrier has no plan", plan.algorithm);
  if (request.ranks < 1 || plan.ranks.size() != static_cast<std::size_t>(request.ranks)) {
    reject("plan {} {}: is for {} ranks but has the steps of {}", plan.algorithm, collective, request.ranks,
           plan.ranks.size());
  }
  if (request.root < 0 || request.root >= request.ranks) {
    reject("plan {} {}: root {} is outside 0 to {}", plan.algorithm, collective, request.root, request.ranks - 1);
  }
  if (plan.blocks < 1) reject("plan {} {}: has {} blocks; at least 1", plan.algorithm, collective, plan.blocks);
  if (partitionOf(request.collective) == Partition::stack && plan.blocks != 1) {
    reject("plan {} {}: has {} blocks; the buffers of this collective are stacks, so it must be 1", plan.algorithm,
           collective, plan.blocks);
  }
  if (plan.scratchBlocks < 0)
    reject("plan {} {}: has {} scratch blocks", plan.algorithm, collective, plan.scratchBlocks);
  const std::int64_t perRank = std::int64_t{2} * std::max(plan.blocks, request.ranks) + plan.scratchBlocks;
  if (perRank > maxCells || perRank * request.ranks > maxCells) {
    reject("plan {} {}: has too many blocks ({} of data, {} of scratch) on {} ranks for a proof", plan.algorithm,
           collective, plan.blocks, plan.scratchBlocks, request.ranks);
  }
}

class StepCheck {
 public:
  StepCheck(const Plan& plan, int rank, std::size_t index)
      : plan_(plan), rank_(rank), index_(index), step_(plan.ranks[rank].steps[index]) {}

  void check() const {
    if (step_.round < 0 || step_.round >= plan_.rounds) {
      reject("{}: the plan has rounds 0 to {}", place(), plan_.rounds - 1);
    }
    if (index_ > 0 && plan_.ranks[rank_].steps[index_ - 1].round > step_.round) {
      reject("{}: stands after a step of round {}; steps must be in order of rounds", place(),
             plan_.ranks[rank_].steps[index_ - 1].round);
    }
    if (step_.blockCount < 1) reject("{}: covers {} blocks; at least 1", place(), step_.blockCount);
    const bool split = partitionOf(plan_.request.collective) == Partition::split;
    if (split &&
        (step_.block < 0 || step_.blockCount > plan_.blocks || step_.block > plan_.blocks - step_.blockCount)) {
      reject("{}: covers block {} and {} after it, but the plan has {} blocks", place(), step_.block,
             step_.blockCount - 1, plan_.blocks);
    }
    if (!split && step_.block != 0) reject("{}: block is {}; in a stack it must be 0", place(), step_.block);
    if (step_.sources.empty()) reject("{}: has no source", place());
    if (step_.destinations.empty()) reject("{}: has no destination", place());
    if (step_.sources.size() > 1 && !isReduction(plan_.request.collective)) {
      reject("{}: has {} sources, but {} reduces nothing", place(), step_.sources.size(),
             nameOf(plan_.request.collective));
    }
    for (const Operand& operand : step_.sources) checkOperand(operand, split);
    for (const Operand& operand : step_.destinations) {
      if (operand.kind == Operand::Kind::input) reject("{}: writes to input {}", place(), operand.index);
      checkOperand(operand, split);
    }
    checkOnce(step_.sources, "source");
    checkOnce(step_.destinations, "destination");
  }

 private:
  std::string place() const { return placeOfStep(plan_, rank_, index_); }

  void checkOperand(const Operand& operand, bool split) const {
    int available = 0;
    const char* buffer = "scratch";
    switch (operand.kind) {
      case Operand::Kind::peer:
        if (operand.index < 0 || operand.index >= plan_.request.ranks) {
          reject("{}: peer {} is outside 0 to {}", place(), operand.index, plan_.request.ranks - 1);
        }
        if (operand.index == rank_) reject("{}: the rank is its own peer", place());
        return;
      case Operand::Kind::input:
        available = inputBlocksOf(plan_, rank_);
        buffer = "input";
        break;
      case Operand::Kind::output:
        available = outputBlocksOf(plan_, rank_);
        buffer = "output";
        break;
      case Operand::Kind::scratch:
        available = plan_.scratchBlocks;
        break;
      default:
        reject("{}: an operand is of no known kind", place());
    }
    if (operand.index < 0 || step_.blockCount > available || operand.index > available - step_.blockCount) {
      reject("{}: {} block {} and {} after it, but this rank's {} has {} blocks", place(), buffer, operand.index,
             step_.blockCount - 1, buffer, available);
    }
    if (split && operand.index != step_.block) {
      reject("{}: is about block {} but has {} block {}; all operands must have the same", place(), step_.block, buffer,
             operand.index);
    }
  }

  void checkOnce(const std::vector<Operand>& operands, const char* role) const {
    if (operands.size() < 2) return;
    std::vector<std::int64_t> keys;
    keys.reserve(operands.size());
    for (const Operand& operand : operands) {
      keys.push_back((static_cast<std::int64_t>(operand.kind) << 32) + operand.index);
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return;
    constexpr std::array kinds = {"input", "output", "scratch", "peer"};
    reject("{}: lists {} {} twice as a {}", place(), kinds[static_cast<std::size_t>(*twice >> 32)], *twice & 0xffffffff,
           role);
  }

  const Plan& plan_;
  int rank_;
  std::size_t index_;
  const Step& step_;
};

}  // namespace

void checkForm(const Plan& plan) {
  checkHead(plan);
  int rounds = 0;
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    const std::vector<Step>& steps = plan.ranks[rank].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) StepCheck(plan, rank, i).check();
    if (!steps.empty()) rounds = std::max(rounds, steps.back().round + 1);
  }
  if (rounds > maxRounds) {
    reject("plan {} {}: has {} rounds; a proof goes up to {}", plan.algorithm, nameOf(plan.request.collective), rounds,
           maxRounds);
  }
  if (rounds != plan.rounds) {
    reject("plan {} {}: says {} rounds but its last step is in round {}", plan.algorithm,
           nameOf(plan.request.collective), plan.rounds, rounds - 1);
  }
}

}  // namespace tacc::proof
