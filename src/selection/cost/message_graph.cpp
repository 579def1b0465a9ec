#include "selection/cost/message_graph.hpp"

#include <unordered_map>

namespace tacc {
namespace {

std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

struct Sent {
  std::vector<int> messages;
  std::size_t taken = 0;
  int pair = 0;
};

}  // namespace

MessageGraph::MessageGraph(const Plan& plan, double chunkBytes, const std::function<double(int, int)>& overhead,
                           double gamma) {
  const int p = plan.request.ranks;
  const bool split = partitionOf(plan.request.collective) == Partition::split;
  const double blockBytes = split ? chunkBytes / plan.blocks : chunkBytes;
  std::unordered_map<std::size_t, Sent> sent;
  const auto between = [&](int from, int to) -> Sent& { return sent[at(from) * at(p) + at(to)]; };
  steps.resize(at(p));
  for (int rank = 0; rank < p; ++rank) {
    steps[at(rank)].reserve(plan.ranks[at(rank)].steps.size());
    for (const Step& step : plan.ranks[at(rank)].steps) {
      TrafficStep& mine = steps[at(rank)].emplace_back();
      for (const Operand& to : step.destinations) {
        if (to.kind != Operand::Kind::peer) continue;
        Sent& before = between(rank, to.index);
        if (before.messages.empty()) before.pair = static_cast<int>(pairs++);
        mine.sends.push_back(static_cast<int>(messages.size()));
        mine.seconds += overhead(rank, to.index);
        before.messages.push_back(static_cast<int>(messages.size()));
        messages.push_back({rank, to.index, before.pair, blockBytes * step.blockCount});
      }
    }
  }
  for (int rank = 0; rank < p; ++rank) {
    for (std::size_t s = 0; s < plan.ranks[at(rank)].steps.size(); ++s) {
      const Step& step = plan.ranks[at(rank)].steps[s];
      TrafficStep& mine = steps[at(rank)][s];
      for (const Operand& from : step.sources) {
        if (from.kind != Operand::Kind::peer) continue;
        Sent& pair = between(from.index, rank);
        mine.receives.push_back(pair.messages.at(pair.taken++));
        mine.seconds += overhead(from.index, rank);
      }
      const bool local = mine.receives.empty() && mine.sends.empty();
      const double passes = local ? 1 : static_cast<double>(step.sources.size()) - 1;
      mine.seconds += gamma * passes * blockBytes * step.blockCount;
    }
  }
}

}  // namespace tacc
