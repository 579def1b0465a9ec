// tacc's messages in those of MPI (TACC_TRANSPORT=mpi). All communicators of tacc use one communicator of MPI, which is
// there before the program does anything, and each has a range of its tags. One for each would be made while the
// program makes its own: Open MPI 4.1 waits for ever where a communicator is made beside an MPI_Comm_idup.
#pragma once

#include <mpi.h>

#include "tacc/tacc.h"
#include "tacc/transport.h"
#include "tag_ranges.hpp"

namespace tacc::mpi {

struct Communicator;
/// What the messages of one communicator go by: its tags and its ranks.
struct MessageRange;

class SharedMessages {
 public:
  /// MPI is initialized. Collective over the world.
  void open();
  /// No transport is left.
  void close() noexcept;
  bool isOpen() const noexcept { return world_ != MPI_COMM_NULL; }

  /// Fills in `transport` for the ranks of `communicator`, which are all of the world; collective over it. Different
  /// ones may be filled in by different threads at once. A range is used again when all its ranks have ended what it
  /// was for. Where thousands of communicators have one each, a further one has a communicator of MPI to itself.
  taccResult_t fill(Communicator& communicator, taccTransport_t& transport);
  /// A call on the communicator has failed here, or it is about to be aborted: what was sent may never be received, and
  /// would be met by who used its tags again. So this rank keeps them.
  static void keepRange(const Communicator& communicator) noexcept;

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  TagRanges ranges_;
};

}  // namespace tacc::mpi
