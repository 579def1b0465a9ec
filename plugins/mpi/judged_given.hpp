// Whether a collective with a request, where every rank has as much, is one that tacc serves.
#pragma once

#include <mpi.h>

#include "communicators.hpp"
#include "judged_arguments.hpp"
#include "prepared.hpp"
#include "types.hpp"

namespace tacc::mpi {

/// `needed`: where its result is, or without one what it gives.
inline Judged judgeGiven(MPI_Count elements, const Given& a, const void* needed) {
  return judgeReduction(elements, reductionOf(a.receiveType, a.op), needed);
}

inline Judged judgeReceived(const Given& a) {
  return judgeMovement(a.receive, a.receiveCount, a.receiveType, a.send, a.sendCount, a.sendType);
}

constexpr bool hasRoot(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

/// The same on all ranks, from what MPI's rules make equal on them. `communicator` has several ranks. Not of kinds with
/// counts for each rank. Nothing but the comparisons of the kind is left of it where that is known, which a call that
/// is passed on needs.
[[gnu::always_inline]] inline Judged judge(Kind kind, const Given& a, const Communicator& communicator) {
  if (hasRoot(kind) && (a.root < 0 || a.root >= communicator.ranks)) return {Passed::arguments};
  const bool isRoot = communicator.rank == a.root;
  switch (kind) {
    case Kind::allreduce:
    case Kind::scan:
    case Kind::exscan:
      return judgeGiven(a.receiveCount, a, a.receive);
    case Kind::reduce:
      return judgeGiven(a.receiveCount, a, isRoot ? a.receive : a.send);
    case Kind::reduceScatterBlock:
      return judgeGiven(a.receiveCount * communicator.ranks, a, a.receive);
    case Kind::gather:
      return isRoot ? judgeReceived(a) : judgeMovement(a.send, a.sendCount, a.sendType);
    case Kind::scatter:
      return isRoot ? judgeMovement(a.send, a.sendCount, a.sendType, a.receive, a.receiveCount, a.receiveType)
                    : judgeMovement(a.receive, a.receiveCount, a.receiveType);
    case Kind::bcast:
      return judgeMovement(a.receive, a.receiveCount, a.receiveType);
    case Kind::allgather:
    case Kind::alltoall:
      return judgeReceived(a);
    default:  // a barrier
      break;
  }
  return {};
}

}  // namespace tacc::mpi
