// Collectives by their names and forms, and what the MPIs themselves do wrong in them.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace tacc::test {

/// Those that MPI_IN_PLACE is for come first.
enum class Call {
  allreduce,
  reduce,
  scan,
  exscan,
  reduceScatterBlock,
  reduceScatter,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  gather,
  gatherv,
  scatter,
  scatterv,
  bcast,
  barrier,
};
inline const char* nameOf(Call call) {
  constexpr const char* names[] = {"Allreduce",      "Reduce",    "Scan",       "Exscan",   "Reduce_scatter_block",
                                   "Reduce_scatter", "Allgather", "Allgatherv", "Alltoall", "Alltoallv",
                                   "Gather",         "Gatherv",   "Scatter",    "Scatterv", "Bcast",
                                   "Barrier"};
  return names[static_cast<int>(call)];
}
inline bool isReduction(Call call) { return call <= Call::reduceScatter; }
inline bool isRooted(Call call) { return call == Call::reduce || (call >= Call::gather && call <= Call::bcast); }
/// Movements with a count for each rank.
inline bool isUnequal(Call call) {
  return call == Call::allgatherv || call == Call::alltoallv || call == Call::gatherv || call == Call::scatterv;
}

enum class Form { blocking, nonblocking, persistent };
inline const char* nameOf(Form form) {
  constexpr const char* names[] = {"", "nonblocking ", "persistent "};
  return names[static_cast<int>(form)];
}

/// Whether MPI_Waitsome and its like wait for a persistent collective that is complete and was not started again, as
/// those of MPICH 4.0.2 do.
#ifdef OPEN_MPI
inline constexpr bool waitsForInactiveOnes = false;
/// Whether a persistent collective needs its derived types after it was made, as those of Open MPI 4.1.4 do.
inline constexpr bool needsTypesOfPersistentOnes = true;
#else
inline constexpr bool waitsForInactiveOnes = true;
inline constexpr bool needsTypesOfPersistentOnes = false;
#endif

/// A call in place, as all ranks know it.
struct CallInPlace {
  Call call;
  Form form;
  int ranks;
  std::size_t bytes;  // of the vector that is reduced, or of a block
};

/// Whether the MPI itself crashes, waits for ever or gives wrong numbers: what tests found of MPICH 4.0.2 and Open MPI
/// 4.1.4 without the library.
inline bool isWrongInMpi(const CallInPlace& c) {
#ifdef OPEN_MPI
  // 4.1.4 waits for ever, unless the blocks are short and the ranks two.
  return c.call == Call::alltoallv && c.form != Form::blocking && c.ranks > 1;
#else
  const bool isPersistent = c.form == Form::persistent;
  // 4.0.2 takes MPI_IN_PLACE for an address where it reduces long vectors in halves.
  constexpr std::size_t longBytes = 2048;
  if (c.call == Call::reduce && c.form == Form::blocking) return c.ranks > 1 && c.bytes > longBytes;
  // From the second MPI_Start on 4.0.2 moves nothing, or waits for a message of another length. With one rank the
  // type is freed too often.
  if (c.call == Call::allgather && isPersistent) return (c.ranks & (c.ranks - 1)) == 0;
  return c.call == Call::scatter && isPersistent && c.ranks > 1;
#endif
}

}  // namespace tacc::test
