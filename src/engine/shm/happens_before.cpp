#include "engine/shm/happens_before.hpp"

#include <algorithm>
#include <utility>

namespace tacc {

std::vector<PlanMessage> matchMessages(const Plan& plan) {
  const auto p = static_cast<std::size_t>(plan.request.ranks);
  struct End {
    int step, round;
  };
  std::vector<std::vector<End>> sends(p * p), receives(p * p);  // [sender * p + receiver]
  for (std::size_t rank = 0; rank < p; ++rank) {
    const auto& steps = plan.ranks[rank].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const End end{static_cast<int>(s), steps[s].round};
      for (const Operand& o : steps[s].sources)
        if (o.kind == Operand::Kind::peer) receives[static_cast<std::size_t>(o.index) * p + rank].push_back(end);
      for (const Operand& o : steps[s].destinations)
        if (o.kind == Operand::Kind::peer) sends[rank * p + static_cast<std::size_t>(o.index)].push_back(end);
    }
  }
  std::vector<PlanMessage> messages;
  for (std::size_t pair = 0; pair < p * p; ++pair)
    for (std::size_t k = 0; k < sends[pair].size(); ++k)
      messages.push_back({static_cast<int>(pair / p), sends[pair][k].step, sends[pair][k].round,
                          static_cast<int>(pair % p), receives[pair][k].step, receives[pair][k].round});
  return messages;
}

HappensBefore::HappensBefore(const Plan& plan, const std::vector<PlanMessage>& messages)
    : ranks_(plan.request.ranks),
      table_(
          static_cast<std::size_t>(plan.rounds) * static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_),
          -1) {
  std::vector<std::vector<const PlanMessage*>> arrivals(static_cast<std::size_t>(plan.rounds));
  for (const PlanMessage& m : messages) arrivals[static_cast<std::size_t>(m.receiveRound)].push_back(&m);
  for (int round = 0; round < plan.rounds; ++round) {
    if (round > 0) {
      for (int rank = 0; rank < ranks_; ++rank) {
        for (int other = 0; other < ranks_; ++other)
          table_[index(rank, round, other)] = table_[index(rank, round - 1, other)];
        table_[index(rank, round, rank)] = round - 1;
      }
    }
    for (const PlanMessage* m : arrivals[static_cast<std::size_t>(round)]) {
      for (int other = 0; other < ranks_; ++other) {
        int& mine = table_[index(m->receiver, round, other)];
        mine = std::max(mine, known(m->sender, m->sendRound, other));
      }
      int& sender = table_[index(m->receiver, round, m->sender)];
      sender = std::max(sender, m->sendRound);
    }
  }
}

}  // namespace tacc
