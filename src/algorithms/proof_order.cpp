// What is ordered across ranks: which messages may be read at their source until they have been taken.
#include <algorithm>

#include "algorithms/proof.hpp"

namespace tacc::proof {
namespace {

/// A message of which `writeStep` overwrites a source block: `readStep` must come before it.
struct Demand {
  int readStep;
  int writeStep;
  int message;
};

/// The operand at the sender that holds the message: what it copies from, else where its result goes too. nullptr:
/// none, the result exists as a message only.
const Operand* homeOf(const Step& step) {
  if (step.sources.size() == 1 && step.sources[0].kind != Operand::Kind::peer) return &step.sources[0];
  for (const Operand& operand : step.destinations) {
    if (operand.kind != Operand::Kind::peer) return &operand;
  }
  return nullptr;
}

/// Goes through the rounds backwards with the next write of every cell.
class DemandList {
 public:
  DemandList(const PlanAnalysis& analysis, const Cells& cells)
      : analysis_(analysis), cells_(cells), nextWrite_(static_cast<std::size_t>(cells.count()), -1) {}

  std::vector<Demand> make() {
    const std::vector<int>& order = analysis_.byRound;
    for (std::size_t end = order.size(), begin = end; end > 0; end = begin) {
      const StepRef& last = analysis_.steps[order[end - 1]];
      for (begin = end; begin > 0; --begin) {
        const StepRef& ref = analysis_.steps[order[begin - 1]];
        if (ref.rank != last.rank || ref.step->round != last.step->round) break;
        demandFor(order[begin - 1]);
      }
      for (std::size_t i = begin; i < end; ++i) noteWrites(order[i]);
    }
    std::sort(demands_.begin(), demands_.end(),
              [](const Demand& a, const Demand& b) { return a.readStep < b.readStep; });
    return std::move(demands_);
  }

 private:
  void demandFor(int id) {
    const StepRef& ref = analysis_.steps[id];
    const Operand* home = homeOf(*ref.step);
    if (home == nullptr || analysis_.firstSent[id] == analysis_.firstSent[id + 1]) return;
    int previous = -1;
    for (int i = 0; i < ref.step->blockCount; ++i) {
      const int write = nextWrite_[cells_.cellOf(ref.rank, home->kind, home->index + i)];
      if (write < 0 || write == previous) continue;
      previous = write;
      for (int m = analysis_.firstSent[id]; m < analysis_.firstSent[id + 1]; ++m) {
        demands_.push_back({analysis_.messages[m].receiveStep, write, m});
      }
    }
  }

  void noteWrites(int id) {
    const StepRef& ref = analysis_.steps[id];
    for (const Operand& operand : ref.step->destinations) {
      if (operand.kind == Operand::Kind::peer) continue;
      for (int i = 0; i < ref.step->blockCount; ++i) {
        nextWrite_[cells_.cellOf(ref.rank, operand.kind, operand.index + i)] = id;
      }
    }
  }

  const PlanAnalysis& analysis_;
  const Cells& cells_;
  std::vector<int> nextWrite_;
  std::vector<Demand> demands_;
};

/// Which steps surely come after one step: those of later rounds of its rank, those that receive from such steps, and
/// so on.
class After {
 public:
  After(const Plan& plan, const PlanAnalysis& analysis)
      : analysis_(analysis),
        position_(analysis.steps.size()),
        reached_(analysis.steps.size(), -1),
        earliest_(plan.ranks.size()) {
    for (std::size_t i = 0; i < analysis.byRound.size(); ++i) position_[analysis.byRound[i]] = static_cast<int>(i);
  }

  void startFrom(int step) {
    source_ = step;
    const int none = analysis_.steps[analysis_.byRound.back()].step->round;
    std::fill(earliest_.begin(), earliest_.end(), none);
    reach(step);
    next_ = position_[step] + 1;
  }

  bool comes(int step) {
    for (; next_ <= position_[step]; ++next_) {
      const int id = analysis_.byRound[next_];
      const StepRef& ref = analysis_.steps[id];
      bool after = ref.step->round > earliest_[ref.rank];
      for (int i = analysis_.firstReceived[id]; !after && i < analysis_.firstReceived[id + 1]; ++i) {
        after = reached_[analysis_.messages[analysis_.received[i]].sendStep] == source_;
      }
      if (after) reach(id);
    }
    return reached_[step] == source_;
  }

 private:
  void reach(int id) {
    const StepRef& ref = analysis_.steps[id];
    reached_[id] = source_;
    earliest_[ref.rank] = std::min(earliest_[ref.rank], ref.step->round);
  }

  const PlanAnalysis& analysis_;
  std::vector<int> position_;  // in byRound
  std::vector<int> reached_;   // the source from which the step was reached last
  std::vector<int> earliest_;  // round of the rank's first step that was reached
  int source_ = -1;
  int next_ = 0;
};

}  // namespace

std::uint64_t countOverwritten(const Plan& plan, const PlanAnalysis& analysis, const Cells& cells) {
  const std::vector<Demand> demands = DemandList(analysis, cells).make();
  if (demands.empty()) return 0;
  std::vector<int> overwritten;
  After after(plan, analysis);
  for (std::size_t i = 0; i < demands.size(); ++i) {
    if (i == 0 || demands[i].readStep != demands[i - 1].readStep) after.startFrom(demands[i].readStep);
    if (!after.comes(demands[i].writeStep)) overwritten.push_back(demands[i].message);
  }
  std::sort(overwritten.begin(), overwritten.end());
  return static_cast<std::uint64_t>(std::unique(overwritten.begin(), overwritten.end()) - overwritten.begin());
}

}  // namespace tacc::proof
