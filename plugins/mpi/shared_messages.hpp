// tacc's messages in those of MPI (TACC_TRANSPORT=mpi). All communicators of tacc use one communicator of MPI, which is
// there before the program does anything, and each has a range of its tags. One for each would be made while the
// program makes its own: Open MPI 4.1 waits for ever where a communicator is made beside an MPI_Comm_idup.
#pragma once

#include <mpi.h>

#include <mutex>
#include <optional>

#include "tacc/tacc.h"
#include "tacc/transport.h"

namespace tacc::mpi {

struct Communicator;

class SharedMessages {
 public:
  /// MPI is initialized. Collective over the world.
  void open();
  /// No transport is left.
  void close() noexcept;
  bool isOpen() const noexcept { return world_ != MPI_COMM_NULL; }

  /// Fills in `transport` for the ranks of `communicator`, which are all of the world; collective over it. Different
  /// ones may be filled in by different threads at once. When all ranges have been used, which takes thousands of
  /// communicators, each further one has a communicator of MPI to itself.
  taccResult_t fill(const Communicator& communicator, taccTransport_t& transport);

 private:
  std::optional<int> takeRange(MPI_Comm mpi);

  MPI_Comm world_ = MPI_COMM_NULL;
  int ranges_ = 0;
  std::mutex mutex_;
  // The first that this rank has never used. What was sent to a communicator that is no more, and was not received
  // there, is never met in another one.
  int next_ = 0;
};

}  // namespace tacc::mpi
