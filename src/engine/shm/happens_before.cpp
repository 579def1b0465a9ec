#include "engine/shm/happens_before.hpp"

#include <algorithm>

namespace tacc {

HappensBefore::HappensBefore(const Plan& plan, const PlanAnalysis& analysis, const IsEarly& isEarly)
    : ranks_(plan.request.ranks),
      table_(
          static_cast<std::size_t>(plan.rounds) * static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_),
          -1) {
  std::vector<std::vector<const PlanAnalysis::Message*>> arrivals(static_cast<std::size_t>(plan.rounds));
  for (const PlanAnalysis::Message& m : analysis.messages)
    arrivals[static_cast<std::size_t>(analysis.receiveRound(m))].push_back(&m);
  for (int round = 0; round < plan.rounds; ++round) {
    if (round > 0) {
      for (int rank = 0; rank < ranks_; ++rank) {
        for (int other = 0; other < ranks_; ++other)
          table_[index(rank, round, other)] = table_[index(rank, round - 1, other)];
        table_[index(rank, round, rank)] = round - 1;
      }
    }
    for (const PlanAnalysis::Message* m : arrivals[static_cast<std::size_t>(round)]) {
      const int over = analysis.sendRound(*m) - (isEarly && isEarly(*m) ? 1 : 0);
      if (over < 0) continue;
      for (int other = 0; other < ranks_; ++other) {
        int& mine = table_[index(m->receiver, round, other)];
        mine = std::max(mine, known(m->sender, over, other));
      }
      int& sender = table_[index(m->receiver, round, m->sender)];
      sender = std::max(sender, over);
    }
  }
}

}  // namespace tacc
