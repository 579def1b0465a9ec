// Collectives of MPI that do not run at once: their arguments kept, their buffers made ready, to be given to a stream.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "report.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

struct Communicator;

/// One call that is judged and then taken over or passed on. What is asked must be answered alike by all ranks of the
/// communicator. Two words, which functions return in registers.
struct Judged {
  Passed passed = Passed::none;
  bool isMeasuredItself = false;  // a contest repeats the call, which each time does the same
  std::size_t bytes = 0;          // 0: there is nothing to do
};

enum class Kind {
  allreduce,
  bcast,
  reduce,
  reduceScatterBlock,
  scan,
  exscan,
  allgather,
  alltoall,
  gather,
  scatter,
  reduceScatter,
  allgatherv,
  alltoallv,
  gatherv,
  scatterv,
  barrier
};

/// Counts and displacements of a buffer that has a block for each rank: copies of the program's.
struct Places {
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displacements;  // in extents of the type
};

/// What MPI's functions are given, as far as one has it, but for counts of each rank. Where there is one buffer, or one
/// count and type, it stands as that of the receiver.
struct Given {
  const void* send = nullptr;
  MPI_Count sendCount = 0;
  MPI_Datatype sendType = MPI_DATATYPE_NULL;
  void* receive = nullptr;
  MPI_Count receiveCount = 0;
  MPI_Datatype receiveType = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
};

/// All of it.
struct Arguments : Given {
  Places sendPlaces{}, receivePlaces{};  // instead of the counts; empty where this rank uses none
};

/// A collective that can be started once. Holds copies of buffers that are not as tacc wants them, so it has to live
/// until the call is done.
struct Prepared {
  std::function<taccResult_t(taccStream_t)> start;
  std::function<void()> deliver;  // once it is done: what arrived goes to where MPI's caller wants it
};

/// Duplicates of derived types, which the program may free while a call that uses them is under way.
class KeptTypes {
 public:
  KeptTypes() = default;
  ~KeptTypes();
  KeptTypes(const KeptTypes&) = delete;
  KeptTypes& operator=(const KeptTypes&) = delete;
  /// `type` itself where it is no derived one.
  MPI_Datatype keep(MPI_Datatype type);

 private:
  std::vector<MPI_Datatype> types_;
};

/// Puts into `arguments`, which are let through, duplicates of those types that `rank` uses; they live as long as
/// what is returned. To be called and destroyed in the program's threads.
std::shared_ptr<KeptTypes> keepTypes(Kind kind, Arguments& arguments, int rank);

/// Of arguments that are let through, for a communicator that has joined. In the program's thread, as are the
/// calls of `deliver`: MPI packs. Throws std::bad_alloc and std::runtime_error.
Prepared prepare(Kind kind, const Arguments& arguments, const Communicator& communicator);
/// prepare() of kinds with counts for each rank.
Prepared prepareUnequal(Kind kind, const Arguments& arguments, const Communicator& communicator);

}  // namespace tacc::mpi
