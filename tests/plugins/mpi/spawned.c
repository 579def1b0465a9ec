/* Ranks that were started apart: two spawn two more, and all four make one communicator. Launched by run.sh, by itself
 * and as what it spawns. */
#include <mpi.h>
#include <stdio.h>

enum { calls = 200, spawned = 2 };

static int isWrong(int found, int expected, const char* what) {
  if (found != expected) printf("failed: %s gives %d and not %d\n", what, found, expected);
  return found != expected;
}

static int sumOver(MPI_Comm comm, int mine) {
  int sum = -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

/* Over ranks of two worlds, of which one may have libtacc_mpi and the other not. */
static int useAll(MPI_Comm all) {
  int rank, ranks, wrong = 0, call, number;
  MPI_Request request;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &ranks);
  for (call = 0; call < calls; ++call) {
    wrong += isWrong(sumOver(all, rank + call), ranks * (ranks - 1) / 2 + ranks * call, "MPI_Allreduce over all");
    number = rank == call % ranks ? call : -1;
    MPI_Bcast(&number, 1, MPI_INT, call % ranks, all);
    wrong += isWrong(number, call, "MPI_Bcast over all");
  }
  MPI_Barrier(all);
  number = -1;
  MPI_Iallreduce(&rank, &number, 1, MPI_INT, MPI_SUM, all, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return wrong + isWrong(number, ranks * (ranks - 1) / 2, "MPI_Iallreduce over all");
}

int main(int argc, char** argv) {
  MPI_Comm parent, others, all, part;
  int ranks, wrong = 0, isChild;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  isChild = parent != MPI_COMM_NULL;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  wrong += isWrong(sumOver(MPI_COMM_WORLD, 1), ranks, "MPI_Allreduce over the world");
  others = parent;
  if (!isChild) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, spawned, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS) {
      puts("skipped: this MPI spawns nothing");
      MPI_Finalize();
      return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  }
  MPI_Intercomm_merge(others, isChild, &all);
  wrong += useAll(all);
  MPI_Comm_split(all, isChild, 0, &part); /* one world each again */
  wrong += isWrong(sumOver(part, 1), ranks, "MPI_Allreduce over one world");
  wrong = sumOver(all, wrong);
  MPI_Comm_free(&part);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
  if (wrong == 0 && !isChild) puts("all right");
  MPI_Finalize();
  return wrong != 0;
}
