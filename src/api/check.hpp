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

/// Checks a send or receive. `inGroup`: whether its counterpart can be on this rank too.
void checkPointToPoint(const taccComm& comm, const PointToPoint& operation, bool inGroup);

void checkType(taccDataType_t type);

/// Fails when a required pointer argument is null.
void checkPointer(const void* pointer, const char* name);

}  // namespace tacc
