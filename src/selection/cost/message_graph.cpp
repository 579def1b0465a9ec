#include "selection/cost/message_graph.hpp"

#include <unordered_map>

#include "algorithms/plan_analysis.hpp"
#include "core/index.hpp"

namespace tacc {
namespace {}  // namespace

MessageGraph::MessageGraph(const Plan& plan, double chunkBytes, const std::function<double(int, int)>& overhead,
                           double gamma) {
  const int p = plan.request.ranks;
  const bool split = partitionOf(plan.request.collective) == Partition::split;
  const double blockBytes = split ? chunkBytes / plan.blocks : chunkBytes;
  const PlanAnalysis analysis(plan);
  std::unordered_map<std::size_t, int> pairOf;
  messages.reserve(analysis.messages.size());
  for (const PlanAnalysis::Message& m : analysis.messages) {
    const auto [pair, isNew] = pairOf.try_emplace(at(m.sender) * at(p) + at(m.receiver), static_cast<int>(pairs));
    if (isNew) ++pairs;
    messages.push_back(
        {m.sender, m.receiver, pair->second, blockBytes * analysis.steps[at(m.sendStep)].step->blockCount});
  }
  steps.resize(at(p));
  for (std::size_t id = 0; id < analysis.steps.size(); ++id) {
    const auto& [step, rank, index] = analysis.steps[id];
    TrafficStep& mine = steps[at(rank)].emplace_back();
    for (int m = analysis.firstSent[id]; m < analysis.firstSent[id + 1]; ++m) {
      mine.sends.push_back(m);
      mine.seconds += overhead(rank, analysis.messages[at(m)].receiver);
    }
    for (int i = analysis.firstReceived[id]; i < analysis.firstReceived[id + 1]; ++i) {
      mine.receives.push_back(analysis.received[at(i)]);
      mine.seconds += overhead(analysis.messages[at(mine.receives.back())].sender, rank);
    }
    const bool local = mine.receives.empty() && mine.sends.empty();
    const double passes = local ? 1 : static_cast<double>(step->sources.size()) - 1;
    mine.seconds += gamma * passes * blockBytes * step->blockCount;
  }
}

}  // namespace tacc
