#include "selection/cost/node_work.hpp"

#include <algorithm>

#include "algorithms/plan_analysis.hpp"

namespace tacc {
namespace {

using Kind = Operand::Kind;

bool isOfCall(const Operand& operand) { return operand.kind == Kind::input || operand.kind == Kind::output; }
bool isOfPeer(const Operand& operand) { return operand.kind == Kind::peer; }

/// A step that sends what lies in a buffer of the call, or is written into one.
bool sendsByReference(const Step& step) {
  const bool isCopy = step.sources.size() == 1 && isOfCall(step.sources[0]);
  return isCopy || std::ranges::any_of(step.destinations, [](const Operand& to) { return to.kind == Kind::output; });
}

void add(std::vector<NodeRead>& reads, int owner, double blocks, bool ofCall) {
  for (NodeRead& read : reads) {
    if (read.owner != owner || read.isOfCall != ofCall) continue;
    read.blocks += blocks;
    return;
  }
  reads.push_back({owner, blocks, ofCall});
}

}  // namespace

NodeWork::NodeWork(const Plan& plan, bool isDirect) : blocks(plan.blocks), rounds(plan.rounds) {
  const auto p = static_cast<std::size_t>(plan.request.ranks);
  const PlanAnalysis analysis(plan);
  volume = plan.scratchBlocks;
  ranks.resize(p);
  for (std::size_t r = 0; r < p; ++r) {
    int slots = 0;
    for (std::size_t s = 0; s < plan.ranks[r].steps.size(); ++s) {
      const Step& step = plan.ranks[r].steps[s];
      if (ranks[r].empty() || ranks[r].back().round != step.round) ranks[r].emplace_back().round = step.round;
      NodeTurn& turn = ranks[r].back();
      const bool sends = std::ranges::any_of(step.destinations, isOfPeer);
      const bool stages = sends && !(isDirect && sendsByReference(step));
      const double width = step.blockCount;
      double written = stages ? width : 0;
      if (stages) {
        turn.writes += width;
        slots += step.blockCount;
      }
      for (const Operand& to : step.destinations) {
        if (isOfPeer(to)) continue;
        (isOfCall(to) ? turn.writesOfCall : turn.writes) += width;
        written += width;
      }
      const auto id = static_cast<std::size_t>(analysis.firstStep[r]) + s;
      for (int i = analysis.firstReceived[id]; i < analysis.firstReceived[id + 1]; ++i) {
        const PlanAnalysis::Message& message =
            analysis.messages[static_cast<std::size_t>(analysis.received[static_cast<std::size_t>(i)])];
        const Step& sent = *analysis.steps[static_cast<std::size_t>(message.sendStep)].step;
        const bool isStaged = !(isDirect && sendsByReference(sent));
        if (isStaged) slotReach = std::max(slotReach, step.round - sent.round);
        add(turn.reads, message.sender, width, !isStaged);
        const auto known = std::ranges::find(turn.senders, message.sender);
        if (known == turn.senders.end()) {
          turn.senders.push_back(message.sender);
          turn.sendRounds.push_back(sent.round);
        } else {
          int& round = turn.sendRounds[static_cast<std::size_t>(known - turn.senders.begin())];
          round = std::max(round, sent.round);
        }
      }
      if (written == 0) continue;  // sent by reference: nothing is done
      for (const Operand& from : step.sources)
        if (!isOfPeer(from)) add(turn.reads, static_cast<int>(r), width, isOfCall(from));
    }
    volume = std::max(volume, slots);
  }
}

}  // namespace tacc
