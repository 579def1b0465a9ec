// What a rank does: random correct calls whose every result is checked, and after an error it goes on with whoever is
// left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chaos/board.hpp"
#include "tacc/tacc.h"

namespace tacc::chaos {

struct Round {
  std::uint32_t seed;
  int number;
  int ranks;
  bool hasParts;  ///< each rank calls on a part of its communicator too, in a thread of its own
};

/// Returns when the board says stop, or when this rank is left out.
void runRank(const Round& round, Board& board, const taccUniqueId& id, int rank);

/// Whether what a rank suffers may be seen by others in a call that began then.
bool isSabotaged(const Board& board, int rank, double since);

/// A problem unless the one who is blamed is one who was sabotaged. A rank that suffers itself may see anything.
/// `members`: of the communicator, by their number there.
void judge(const Round& round, Board& board, int self, const std::vector<int>& members, const std::string& failure,
           double since);

/// The rank that an Error's sentence blames first, by its number in the communicator; -1: none.
int culpritIn(std::string_view message);

}  // namespace tacc::chaos
