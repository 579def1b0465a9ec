#include "engine/contributions.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tacc {

Contributions countContributions(const Plan& plan, const std::vector<PlanMessage>& messages) {
  const auto p = static_cast<std::size_t>(plan.request.ranks);
  Contributions result;
  result.ofStep.resize(p);
  for (std::size_t r = 0; r < p; ++r) result.ofStep[r].resize(plan.ranks[r].steps.size());

  // (receiver, receiving step, sender) -> the sending steps, in the order in which the receiver lists them.
  std::map<std::pair<std::pair<int, int>, int>, std::vector<int>> senders;
  for (const PlanMessage& m : messages) senders[{{m.receiver, m.receiveStep}, m.sender}].push_back(m.sendStep);

  using Block = std::pair<Operand::Kind, int>;
  std::vector<std::map<Block, int>> memory(p);
  const auto contribution = [&](std::size_t rank, const Operand& o, int offset) {
    if (o.kind == Operand::Kind::input) return 1;
    const auto found = memory[rank].find({o.kind, o.index + offset});
    return found == memory[rank].end() ? 0 : found->second;
  };

  for (int round = 0; round < plan.rounds; ++round) {
    for (std::size_t rank = 0; rank < p; ++rank) {
      const auto& steps = plan.ranks[rank].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const Step& step = steps[s];
        if (step.round != round) continue;
        auto& counts = result.ofStep[rank][s];
        counts.assign(static_cast<std::size_t>(step.blockCount), 0);
        std::map<int, std::size_t> used;  // messages of one sender in this step so far
        for (const Operand& o : step.sources) {
          const std::vector<int>* incoming = nullptr;
          if (o.kind == Operand::Kind::peer) {
            const auto& list = senders[{{static_cast<int>(rank), static_cast<int>(s)}, o.index}];
            incoming =
                &result.ofStep[static_cast<std::size_t>(o.index)][static_cast<std::size_t>(list[used[o.index]++])];
          }
          for (std::size_t b = 0; b < counts.size(); ++b) {
            const int n = incoming ? (*incoming)[b] : contribution(rank, o, static_cast<int>(b));
            if (step.sources.size() > 1 && n != 1) result.allAtOnce = false;
            counts[b] += n;
          }
        }
        if (step.sources.size() > 1 && std::ranges::any_of(counts, [&](int n) { return n != static_cast<int>(p); }))
          result.allAtOnce = false;
      }
      // Within a round, writes take effect after all reads.
      for (std::size_t s = 0; s < steps.size(); ++s) {
        if (steps[s].round != round) continue;
        for (const Operand& o : steps[s].destinations)
          if (o.kind != Operand::Kind::peer)
            for (std::size_t b = 0; b < result.ofStep[rank][s].size(); ++b)
              memory[rank][{o.kind, o.index + static_cast<int>(b)}] = result.ofStep[rank][s][b];
      }
    }
  }
  return result;
}

}  // namespace tacc
