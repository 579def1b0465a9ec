// A call as all layers below the C interface know it: one collective, or one send or receive.
#pragma once

#include <cstddef>

#include "core/collective.hpp"
#include "core/unequal_blocks.hpp"
#include "tacc/tacc.h"

namespace tacc {

struct StreamedSum;
struct UserReduction;

/// One collective call, already checked: pointers fit the collective, count * size does not overflow, root is in range.
struct Call {
  Collective collective = Collective::barrier;
  const void* send = nullptr;  // may be null where the collective does not use it on this rank, and when count is 0
  void* receive = nullptr;
  std::size_t count = 0;  // as in the C interface (per rank for allgather and the like)
  taccDataType_t type = taccFloat32;
  taccRedOp_t op = taccSum;               // a built-in operation that the type has
  int root = 0;                           // of an allreduce that several were put together to: see makeSignature()
  const void* factor = nullptr;           // PreMulSum: this rank's factor, of `type`; op is then taccSum
  const StreamedSum* streamed = nullptr;  // of an allreduce with taccSum, without buffers: makes and takes its numbers
  const UserReduction* user = nullptr;    // the program's reduction, in the place of `op`
  /// Null: all blocks are of `count` elements. Else the lengths of this rank's blocks, as it says them, and where they
  /// begin; of gather, scatter, allgather, reduce-scatter and alltoall. `count` is 0 then, and an alltoall not in
  /// place.
  const UnequalBlocks* blocks = nullptr;
  /// The library's own, or a step of a call of the program: what the program forces and what a tuning file says does
  /// not concern it, and its times teach the online tuner nothing.
  bool isInternal = false;
};

/// One send or receive, already checked.
struct PointToPoint {
  bool isSend;
  int peer;
  void* buffer;  // only read when sending
  std::size_t count;
  taccDataType_t type;
};

}  // namespace tacc
