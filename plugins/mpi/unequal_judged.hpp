// Whether collectives with a count for each rank are taken over. MPI's rules: what one rank sends another is what that
// expects, in the same numbers; who is not concerned does not know it. So whether there is anything to move is not
// asked: it may look otherwise on each rank.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>

#include "communicators.hpp"
#include "prepared.hpp"
#include "types.hpp"
#include "unequal.hpp"

namespace tacc::mpi {

/// Taken over, whatever is moved.
constexpr Judged takenFor(std::size_t bytes) { return {.bytes = std::max<std::size_t>(bytes, 1)}; }

/// Of which no rank knows the counts of all, so that nothing stands for the call but itself: MPI leaves out blocks that
/// have no length.
constexpr Judged measuredItself(Judged judged) {
  judged.isMeasuredItself = judged.passed == Passed::none;
  return judged;
}

/// Of a rank that has a block for each, or of each: the bytes are those of the mean block. Passed on where it does not
/// give what it uses, counts that are not negative and a type.
template <class Count, class Displacement>
[[gnu::always_inline]] inline Judged judgeBlocks(const UnequalElements<Count, Displacement>& elements, int ranks) {
  const std::size_t size = bytesOf(elements.type);
  const Count* const counts = elements.counts;
  if (elements.address == MPI_IN_PLACE || counts == nullptr || size == noSize) return {Passed::arguments};
  std::size_t all = 0;
  bool isNegative = false;
  for (int r = 0; r < ranks; ++r) {
    isNegative |= counts[r] < 0;
    all += static_cast<std::size_t>(counts[r]);
  }
  if (isNegative) return {Passed::arguments};
  const auto each = static_cast<std::size_t>(ranks);
  return takenFor((all * size + each - 1) / each);
}

/// `count` elements at `own`: the rank's part of `blocks`, unless it is in place.
template <class Count, class Displacement>
[[gnu::always_inline]] inline Judged judgeWithOwn(const UnequalElements<Count, Displacement>& blocks, const void* own,
                                                  MPI_Count count, MPI_Datatype type,
                                                  const Communicator& communicator) {
  const bool isOwn = own == MPI_IN_PLACE || (count >= 0 && type != MPI_DATATYPE_NULL);
  return isOwn ? judgeBlocks(blocks, communicator.ranks) : Judged{Passed::arguments};
}

/// Of a gather or a scatter: `blocks` at the root, one of `count` elements at every rank.
template <class Count, class Displacement>
[[gnu::always_inline]] inline Judged judgeAtRoot(const UnequalElements<Count, Displacement>& blocks, const void* own,
                                                 Count count, MPI_Datatype type, int root,
                                                 const Communicator& communicator) {
  if (root < 0 || root >= communicator.ranks) return {Passed::arguments};
  if (communicator.rank == root) return measuredItself(judgeWithOwn(blocks, own, count, type, communicator));
  const std::size_t size = bytesOf(type);
  if (own == MPI_IN_PLACE || count < 0 || size == noSize) return {Passed::arguments};
  return measuredItself(takenFor(static_cast<std::size_t>(count) * size));
}

/// In place a second call finds other numbers than the first.
template <class Count, class Displacement>
[[gnu::always_inline]] inline Judged judgeAllToAllV(const UnequalElements<Count, Displacement>& send,
                                                    const UnequalElements<Count, Displacement>& receive,
                                                    const Communicator& communicator) {
  const Judged received = judgeBlocks(receive, communicator.ranks);
  if (send.address == MPI_IN_PLACE || received.passed != Passed::none) return received;
  const Judged sent = judgeBlocks(send, communicator.ranks);
  return sent.passed != Passed::none ? sent : measuredItself(received);
}

}  // namespace tacc::mpi
