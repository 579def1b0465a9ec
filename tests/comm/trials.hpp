// One collective call as a test: inputs, the call, the output that it must give, on every kind of rank.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "algorithms/plan.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

inline constexpr int mulSum = taccNumOps;  // stands for an operator made by taccRedOpCreatePreMulSum

/// One rank's view of one collective call: inputs, the call, the expected output.
struct Trial {
  Collective collective;
  taccDataType_t type;
  int op;
  std::size_t count;
  int root;
  bool inPlace;
  bool libraryMemory;
};

/// Every collective with every type and every operation, of these counts.
std::vector<Trial> trialsOfTypes(int ranks, const std::vector<std::size_t>& counts);
/// Every collective with every root, odd counts, in place and not, in private and library memory.
std::vector<Trial> trialsOfRoots(int ranks);
/// Every collective with buffers of about `elements` elements.
std::vector<Trial> trialsOfElements(int ranks, std::size_t elements);

/// All trials of a collective in one communicator: a program's calls follow each other, too. With `algorithm` each call
/// of more than no bytes has to be run by that.
void runAll(taccComm_t comm, int rank, int ranks, const std::vector<Trial>& trials, std::string_view algorithm = {});

}  // namespace tacc::test
