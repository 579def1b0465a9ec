// What a rank does: random correct calls whose every result is checked, and after an error it goes on with whoever is
// left.
#pragma once

#include "chaos/board.hpp"
#include "tacc/tacc.h"

namespace tacc::chaos {

struct Round {
  std::uint32_t seed;
  int number;
  int ranks;
};

/// Returns when the board says stop, or when this rank is left out.
void runRank(const Round& round, Board& board, const taccUniqueId& id, int rank);

/// The rank that an Error's sentence blames first, by its number in the communicator; -1: none.
int culpritIn(std::string_view message);

}  // namespace tacc::chaos
