// The checks of calls whose blocks have unequal lengths.
#pragma once

#include <cstddef>

#include "core/call.hpp"
#include "core/unequal_blocks.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Counts and displacements of such a call, as the program gives them: arrays where a buffer has a block for each rank,
/// else a count.
struct UnequalArguments {
  const std::size_t* sendCounts = nullptr;
  const std::size_t* sendDisplacements = nullptr;  // null: one behind the other
  std::size_t sendCount = 0;
  const std::size_t* receiveCounts = nullptr;
  const std::size_t* receiveDisplacements = nullptr;
  std::size_t receiveCount = 0;
};

/// The blocks of the last such call by this handle, and what they are of.
struct CheckedBlocks {
  UnequalBlocks blocks;  // version 0: there was none
  Collective collective = Collective::barrier;
  taccDataType_t type = taccInt8;
  int root = 0, rank = 0, ranks = 0;
  std::size_t sendBytes = 0, receiveBytes = 0;  // from the buffers' beginnings to behind their last blocks
};

/// As checkCall() (check.hpp); `checked` gets the call's blocks, which it points to then. Programs repeat such calls:
/// of the same blocks as before this compares the numbers, and no more.
void checkUnequal(const taccComm& comm, Call& call, const UnequalArguments& arguments, CheckedBlocks& checked);

}  // namespace tacc
