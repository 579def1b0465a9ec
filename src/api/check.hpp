// The checks of every call's arguments. What passes is what Communicator expects; what does not fails with a sentence
// that names the argument. The checks look at numbers and addresses only and never read through a buffer.
#pragma once

#include <cstddef>
#include <cstdint>

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
/// An operator of the program becomes what it stands for.
void checkOperation(const taccComm& comm, Call& call);
void checkRoot(int root, int ranks);

/// Bytes that a process can have at most: Linux gives it addresses of 47 bits on x86-64 and 48 on Arm, unless it asks
/// for more by an address of its own. A count that says more would be cut into chunks until no memory is left for them.
inline constexpr std::size_t addressSpace = std::size_t{1} << 48;
inline std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Fails when a required pointer argument is null.
void checkPointer(const void* pointer, const char* name);
/// Fails when an array of float is not at a multiple of their size: for what reads and writes them itself, as
/// collectives do not.
void checkFloats(const void* numbers, const char* name);

}  // namespace tacc
