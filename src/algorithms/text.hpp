// Plans as text: a readable dump that loads back to an equal plan.
//
//   tacc plan 1
//   collective allreduce
//   algorithm ring
//   ranks 3
//   root 0
//   blocks 3
//   scratch 0
//   rounds 5
//   rank 0
//     round 0
//       block 2: input 2 -> peer 1
//     round 1
//       block 1: input 1 + peer 2 -> peer 1
//   ...
// A step over several blocks says "blocks 2 to 4:" and names the first of each buffer. In a stack operands have block
// numbers of their own, and the step says "1 block:" or "3 blocks:" only. Empty lines and what follows a # are ignored.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/plan.hpp"

namespace tacc {

/// One line a step, grouped by rank and round.
std::string toText(const Plan& plan);

/// Reads what toText wrote and verifies it. Throws Error (taccInvalidArgument); errors of form name the line.
Plan fromText(std::string_view text);

}  // namespace tacc
