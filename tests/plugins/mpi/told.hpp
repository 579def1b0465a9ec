// What a program is told by MPI, as lines: a run with the library must be told the same as one without (run.sh compares
// them). So only what MPI leaves open is kept out of them: which of several requests was done first, for example.
#pragma once

#include <mpi.h>

#include <sstream>
#include <string>
#include <vector>

#include "draws.hpp"

namespace tacc::test {

/// Adds a line of this rank's.
void tellLine(std::string line);

template <class... Parts>
void tell(const Parts&... parts) {
  std::ostringstream line;
  ((line << parts << ' '), ...);
  tellLine(line.str());
}

template <class Number>
void tellNumbers(const char* what, const std::vector<Number>& numbers) {
  std::ostringstream line;
  line << what;
  for (const Number& number : numbers) line << ' ' << number;
  tellLine(line.str());
}

/// Rank 0 prints the lines of all. Collective over the world, by names that are not taken over.
void printTold();

/// The class of an error, which is the same in each run.
int classOf(int code);

/// Collectives that are taken over; ends the job where they give other numbers.
void useTold(MPI_Comm comm, const char* what);

/// A duplicate of the world, and all its ranks in reverse; freed by freeAll().
std::vector<MPI_Comm> communicatorsOfAll();
void freeAll(std::vector<MPI_Comm>& comms);

// Each makes a drawn program, collective over the world. `draws` are the same on all ranks, `own` are not.
void tellAttributes(Draws& draws);
void tellCallbacksOfTypes(Draws& draws);
void tellGroups(Draws& draws);
void tellTopologies(Draws& draws);
void tellRequests(Draws& draws, Draws& own);
void tellEmptyCalls(Draws& draws);
void tellWrongCalls(Draws& draws);
/// Requests that are done and not waited for, or never started; MPI_Finalize comes next.
void leaveRequests();

}  // namespace tacc::test
