// The checks of every call's arguments. What passes is what Communicator expects; what does not fails with a sentence
// that names the argument. The checks look at numbers and addresses only and never read through a buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api/handles.hpp"
#include "comm/communicator.hpp"
#include "core/collective.hpp"
#include "core/types.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// Bytes that a process can have at most: Linux gives it addresses of 47 bits on x86-64 and 48 on Arm, unless it asks
/// for more by an address of its own. A count that says more would be cut into chunks until no memory is left for them.
inline constexpr std::size_t addressSpace = std::size_t{1} << 48;
inline std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// How a function calls its arguments, for messages.
struct ArgumentNames {
  const char* send = "sendbuff";
  const char* receive = "recvbuff";
  const char* count = "count";
};

/// Checks a collective and makes it what Communicator::run expects: buffers that this rank does not use become null,
/// and an operator of the program becomes taccSum with its factor. A handful of branches when all is well.
void checkCall(const taccComm& comm, Call& call, const ArgumentNames& names);

/// Whether the buffers of a call whose other arguments are known to be right are seen to be so at once: those that this
/// rank uses are there and apart, or the same where both hold the same. checkCall() finds more of them right.
template <Collective collective>
inline bool areSafeBuffers(const Communicator& communicator, const void* send, const void* receive, std::size_t count,
                           taccDataType_t type, int root) noexcept {
  constexpr CollectiveShape shape = shapeOf(collective);
  const int rank = communicator.rank(), ranks = communicator.ranks();
  const bool sends = shape.send.isUsedOn(rank, root), receives = shape.receive.isUsedOn(rank, root);
  if ((sends && send == nullptr) || (receives && receive == nullptr)) return false;
  if (!sends || !receives) return true;
  constexpr bool sendsAll = shape.send.holds == Holds::all, receivesAll = shape.receive.holds == Holds::all;
  if (send == receive) return sendsAll == receivesAll;
  const std::size_t block = count * sizeOf(type), all = block * static_cast<std::size_t>(ranks);
  const std::uintptr_t from = address(send), to = address(receive);
  return from + (sendsAll ? all : block) <= to || to + (receivesAll ? all : block) <= from;
}

/// Checks a send or receive. `inGroup`: whether its counterpart can be on this rank too.
void checkPointToPoint(const taccComm& comm, const PointToPoint& operation, bool inGroup);

void checkType(taccDataType_t type);
/// An operator of the program becomes what it stands for.
void checkOperation(const taccComm& comm, Call& call);
void checkRoot(int root, int ranks);

/// Fails when a required pointer argument is null.
void checkPointer(const void* pointer, const char* name);
/// Fails when an array of float is not at a multiple of their size: for what reads and writes them itself, as
/// collectives do not.
void checkFloats(const void* numbers, const char* name);

}  // namespace tacc
