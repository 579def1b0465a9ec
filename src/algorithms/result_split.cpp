#include "algorithms/result_split.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tacc {
namespace {

bool isPeer(const Operand& operand) { return operand.kind == Operand::Kind::peer; }

class Splitting {
 public:
  explicit Splitting(const LocalPlan& plan) : plan_(plan), isComplete_(static_cast<std::size_t>(plan.blocks), false) {
    for (LocalPlan* part : {&split_.sums, &split_.results}) {
      part->request = plan.request;
      part->algorithm = plan.algorithm;
      part->rank = plan.rank;
      part->blocks = plan.blocks;
    }
    split_.sums.scratchBlocks = plan.scratchBlocks;
  }

  ResultSplit run() {
    plan_.steps.forEach([this](const Step& step) {
      if (step.sources.size() > 1)
        combine(step);
      else if (isPeer(step.sources[0]))
        take(step);
      else
        (holdsResults(step) ? split_.results : split_.sums).steps.append(step);
    });
    return std::move(split_);
  }

 private:
  void combine(const Step& step) {
    if (!step.completes) return split_.sums.steps.append(step);
    const auto own = std::ranges::find_if_not(step.destinations, isPeer);
    if (own == step.destinations.end() || own->kind != Operand::Kind::output) fail(step);
    mark(step);
    split_.complete.push_back({step.block, step.blockCount});
    Step kept = step, sent = step;
    std::erase_if(kept.destinations, isPeer);
    std::erase_if(sent.destinations, [](const Operand& operand) { return !isPeer(operand); });
    sent.sources = {*own};
    sent.completes = false;
    split_.sums.steps.append(kept);
    if (!sent.destinations.empty()) split_.results.steps.append(sent);
  }

  void take(const Step& step) {
    mark(step);
    split_.results.steps.append(step);
  }

  bool holdsResults(const Step& step) const {
    if (step.sources[0].kind != Operand::Kind::output) return false;
    const auto begin = isComplete_.begin() + step.block, end = begin + step.blockCount;
    const auto complete = std::count(begin, end, true);
    if (complete != 0 && complete != step.blockCount) fail(step);
    return complete != 0;
  }

  void mark(const Step& step) { std::fill_n(isComplete_.begin() + step.block, step.blockCount, true); }

  [[noreturn]] void fail(const Step& step) const {
    tacc::fail(taccInternalError,
               "{}, rank {}: the step of round {} over blocks {} to {} moves results and partial sums", plan_.algorithm,
               plan_.rank, step.round, step.block, step.block + step.blockCount - 1);
  }

  const LocalPlan& plan_;
  ResultSplit split_;
  std::vector<bool> isComplete_;  // per block of the output
};

}  // namespace

ResultSplit splitAtResults(const LocalPlan& plan) { return Splitting(plan).run(); }

}  // namespace tacc
