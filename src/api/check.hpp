// The checks of every call's arguments. What passes is what Communicator expects; what does not fails with a sentence
// that names the argument. The checks look at numbers and addresses only and never read through a buffer.
#pragma once

#include <cstddef>

#include "api/handles.hpp"
#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// How a function calls its arguments, for messages.
struct ArgumentNames {
  const char* send = "sendbuff";
  const char* receive = "recvbuff";
  const char* count = "count";
};

/// Checks a collective and makes it what Communicator::run expects: buffers that this rank does not use become null,
/// and an operator of the program becomes taccSum with its factor. A handful of branches when all is well.
void checkCall(const taccComm& comm, Call& call, const ArgumentNames& names);

/// Counts and displacements of a call whose blocks have unequal lengths, as the program gives them: arrays where a
/// buffer has a block for each rank, else a count.
struct UnequalArguments {
  const std::size_t* sendCounts = nullptr;
  const std::size_t* sendDisplacements = nullptr;  // null: one behind the other
  std::size_t sendCount = 0;
  const std::size_t* receiveCounts = nullptr;
  const std::size_t* receiveDisplacements = nullptr;
  std::size_t receiveCount = 0;
};
/// The same as checkCall() of such a call; puts its blocks into `blocks`, which the call then points to.
void checkUnequal(const taccComm& comm, Call& call, const UnequalArguments& arguments, UnequalBlocks& blocks);

/// Checks a send or receive. `inGroup`: whether its counterpart can be on this rank too.
void checkPointToPoint(const taccComm& comm, const PointToPoint& operation, bool inGroup);

void checkType(taccDataType_t type);

/// Fails when a required pointer argument is null.
void checkPointer(const void* pointer, const char* name);
/// Fails when an array of float is not at a multiple of their size: for what reads and writes them itself, as
/// collectives do not.
void checkFloats(const void* numbers, const char* name);

}  // namespace tacc
