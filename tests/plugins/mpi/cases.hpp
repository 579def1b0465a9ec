// Every function that libtacc_mpi takes over, called as a program calls it.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "draws.hpp"

namespace tacc::test {

/// Collective over `comm`, with equal draws on all ranks of it. Throw nothing: what is wrong ends the job.
/// `isTacc`: what tacc serves is called. Else, and in what is passed on, no call is in place and numbers are small:
/// MPICH 4.0 itself crashes in MPI_Reduce in place, fails in MPI_Alltoall in place, and has maxima of unsigned numbers
/// wrong.
void checkReductions(MPI_Comm comm, Draws& draws, bool isTacc);
void checkMovements(MPI_Comm comm, Draws& draws, bool isTacc);

/// MPI_IN_PLACE in every call that allows it, in every form; collective over the world. TACC_TEST_ONLY="persistent
/// Gather" leaves all others out.
void checkInPlace(bool isTacc);

/// Collectives that return a request; collective over the world.
void runNonblocking(unsigned seed, int rounds, bool isTacc);
void runNonblockingInThreads(unsigned seed, bool isTacc);
/// An error handler is called for a request of a communicator that another thread is about to free, or frees it itself.
/// Two ranks.
void freeWhileOthersComplain();
void runPersistent(unsigned seed, bool isTacc);
/// More of them on a communicator than tacc serves there, made twice and started in any order.
void makeManyPersistent();
/// Drawn programs beside MPI's own calls; collective over the world. `isTacc`: tacc serves all that it knows.
/// `hasOthers`: windows, files, neighbours and messages in parts go on beside them.
void runSequences(unsigned seed, bool isTacc, bool hasOthers);
void runSequencesInThreads(unsigned seed, bool isTacc);
/// The same programs again and again: they leave neither descriptors nor memory behind.
void soakSequences(unsigned seed);
/// So many communicators that are made, used and freed in drawn order leave no more behind; rank 0 prints what is
/// taken.
void soakCommunicators(int number);
/// On two ranks.
void pollCollective();
/// Blocks and elements further apart than an int counts bytes.
void reachFar(bool isTacc);
/// All calls on buffers of so many bytes on each rank.
void moveMuch(std::size_t bytes, bool isTacc);
/// Blocks of one rank that an int does not count, where all are `bytes` bytes; on two ranks or more.
void countBeyondInt(std::size_t bytes);
/// Prints a line.
void measureOverlap(unsigned bytes);

}  // namespace tacc::test
