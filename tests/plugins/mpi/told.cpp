// An MPI program that prints what it is told, to run with libtacc_mpi preloaded and without:
//   told attributes|groups|requests|calls [seed]
#include "told.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "corners.hpp"

namespace tacc::test {
namespace {

std::string& toldHere() {
  static std::string lines;
  return lines;
}

}  // namespace

void tellLine(std::string line) { toldHere() += std::move(line) + '\n'; }

void printTold() {
  const std::string& mine = toldHere();
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    int size = static_cast<int>(mine.size());
    std::string theirs = mine;
    if (r != 0 && rank == r) {
      PMPI_Send(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      PMPI_Send(mine.data(), size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    if (rank != 0) continue;
    if (r != 0) {
      PMPI_Recv(&size, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      theirs.resize(static_cast<std::size_t>(size));
      PMPI_Recv(theirs.data(), size, MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    std::printf("rank %d was told:\n%s", r, theirs.c_str());
  }
  std::fflush(stdout);
}

int classOf(int code) {
  int kind = MPI_SUCCESS;
  PMPI_Error_class(code, &kind);
  return kind;
}

void useTold(MPI_Comm comm, const char* what) {
  const int rank = rankIn(comm), ranks = ranksIn(comm);
  int sum = rank, first = rank == ranks - 1 ? 17 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Bcast(&first, 1, MPI_INT, ranks - 1, comm);
  MPI_Barrier(comm);
  if (sum != ranks * (ranks - 1) / 2 || first != 17) complain(std::string("other numbers over ") + what);
}

std::vector<MPI_Comm> communicatorsOfAll() {
  std::vector<MPI_Comm> comms(2);
  MPI_Comm_dup(MPI_COMM_WORLD, comms.data());
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rankIn(MPI_COMM_WORLD), &comms[1]);
  return comms;
}

void freeAll(std::vector<MPI_Comm>& comms) {
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

namespace {

bool tellPart(std::string_view part, unsigned seed) {
  Draws draws(seed), own(seed + 1000 * (static_cast<unsigned>(rankIn(MPI_COMM_WORLD)) + 1));
  if (part == "attributes") {
    tellAttributes(draws);
    tellCallbacksOfTypes(draws);
  } else if (part == "groups") {
    tellGroups(draws);
    tellTopologies(draws);
  } else if (part == "requests") {
    tellRequests(draws, own);
    leaveRequests();
  } else if (part == "calls") {
    tellEmptyCalls(draws);
#ifdef OPEN_MPI  // Debian's MPICH does not look at arguments, and crashes
    tellWrongCalls(draws);
#endif
  } else {
    return false;
  }
  printTold();
  return true;
}

}  // namespace
}  // namespace tacc::test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool isKnown = tacc::test::tellPart(argc > 1 ? argv[1] : "",
                                            argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 1);
  MPI_Finalize();
  return isKnown ? 0 : 2;
}
