/* Ranks that meet in other ways than by MPI_Init, and all make one communicator. Launched by run.sh on two ranks, by
 * itself and as what it spawns:
 *   spawned spawn      two more ranks are started
 *   spawned multiple   two more, by two commands
 *   spawned connect    the two ranks, which were started together, meet through a port
 *   spawned worlds     two more are started, each by a call of its own, and those meet through a port
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

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

/* Null where this MPI starts nothing. */
static MPI_Comm spawn(char* program, char* way, int isMultiple) {
  MPI_Comm others = MPI_COMM_NULL;
  char* arguments[] = {way, NULL};
  char* programs[] = {program, program};
  char** argumentsOf[] = {arguments, arguments};
  const int one[] = {1, 1};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  const int code = isMultiple ? MPI_Comm_spawn_multiple(2, programs, argumentsOf, one, infos, 0, MPI_COMM_WORLD,
                                                        &others, MPI_ERRCODES_IGNORE)
                              : MPI_Comm_spawn(program, arguments, strcmp(way, "worlds") == 0 ? 1 : spawned,
                                               MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
  return code == MPI_SUCCESS ? others : MPI_COMM_NULL;
}

/* Null where this MPI has no ports. `door`: who tells the other its port. */
static MPI_Comm meet(int isAccepting, MPI_Comm own, MPI_Comm door, int other) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm both = MPI_COMM_NULL;
  if (isAccepting) {
    if (MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS) port[0] = 0;
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, other, 0, door);
    if (port[0] != 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, own, &both);
    if (port[0] != 0) MPI_Close_port(port);
  } else {
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, other, 0, door, MPI_STATUS_IGNORE);
    if (port[0] != 0) MPI_Comm_connect(port, MPI_INFO_NULL, 0, own, &both);
  }
  return both;
}

/* Makes one communicator of both sides, uses it, and ends it. */
static int useBoth(MPI_Comm* both, int isUpper, int ownRanks) {
  MPI_Comm all, part;
  int wrong;
  MPI_Intercomm_merge(*both, isUpper, &all);
  wrong = useAll(all);
  MPI_Comm_split(all, isUpper, 0, &part); /* one side each again */
  wrong += isWrong(sumOver(part, 1), ownRanks, "MPI_Allreduce over one side");
  wrong = sumOver(all, wrong);
  MPI_Comm_free(&part);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(both);
  return wrong;
}

static int useWorlds(char* program, MPI_Comm parent, int rank) {
  MPI_Comm children[2], both;
  char port[MPI_MAX_PORT_NAME];
  int child, place = 0, wrong;
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (child = 0; child < 2; ++child) {
      children[child] = spawn(program, "worlds", 0);
      if (children[child] != MPI_COMM_NULL) continue;
      if (rank == 0) puts("skipped: this MPI spawns nothing");
      return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    for (child = 0; child < 2; ++child)
      if (rank == 0) MPI_Send(&child, 1, MPI_INT, 0, 0, children[child]);
    if (rank == 0) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, children[0], MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, children[1]);
    for (child = 0; child < 2; ++child) MPI_Comm_disconnect(&children[child]);
    return 0;
  }
  MPI_Recv(&place, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
  both = meet(place == 0, MPI_COMM_WORLD, parent, 0);
  wrong = both == MPI_COMM_NULL || useBoth(&both, place, 1) != 0;
  MPI_Comm_disconnect(&parent);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Comm parent, others = MPI_COMM_NULL, half;
  int ranks, rank, wrong = 0, isChild;
  const char* way = argc > 1 ? argv[1] : "spawn";
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  isChild = parent != MPI_COMM_NULL;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  wrong += isWrong(sumOver(MPI_COMM_WORLD, 1), ranks, "MPI_Allreduce over the world");
  if (strcmp(way, "worlds") == 0) {
    wrong += useWorlds(argv[0], parent, rank);
  } else if (strcmp(way, "connect") == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    others = meet(rank == 0, half, MPI_COMM_WORLD, 1 - rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (others != MPI_COMM_NULL)
      wrong += useBoth(&others, rank, 1);
    else if (rank == 0)
      puts("skipped: this MPI has no ports");
    MPI_Comm_free(&half);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    others = isChild ? parent : spawn(argv[0], argc > 1 ? argv[1] : "spawn", strcmp(way, "multiple") == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (others != MPI_COMM_NULL)
      wrong += useBoth(&others, isChild, ranks);
    else if (rank == 0)
      puts("skipped: this MPI spawns nothing");
  }
  if (wrong == 0 && rank == 0) printf("all right: %s of the %s ranks\n", way, isChild ? "spawned" : "first");
  MPI_Finalize();
  return wrong != 0;
}
