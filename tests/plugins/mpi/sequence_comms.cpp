#include "sequence_comms.hpp"

#include <array>
#include <vector>

namespace tacc::test {
namespace {

int ranksOfWorld() {
  int ranks = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

int rankInWorld() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// The ranks of the world with a bit in `members`; MPI_COMM_NULL on others.
MPI_Comm groupOf(int members, bool isCalledByMembers) {
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  std::vector<int> ranks;
  for (int r = ranksOfWorld() - 1; r >= 0; --r)
    if (((members >> r) & 1) != 0) ranks.push_back(r);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group);
  if (!isCalledByMembers)
    MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  else if (((members >> rankInWorld()) & 1) != 0)
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return made;
}

/// The halves of the world, which meet and become one, the upper one first.
MPI_Comm merged() {
  const int rank = rankInWorld(), half = ranksOfWorld() / 2;
  const bool isLow = rank < half;
  MPI_Comm own = MPI_COMM_NULL, both = MPI_COMM_NULL, made = MPI_COMM_NULL;
  if (half == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
  }
  MPI_Comm_split(MPI_COMM_WORLD, isLow ? 0 : 1, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, isLow ? half : 0, 4, &both);
  MPI_Intercomm_merge(both, isLow ? 1 : 0, &made);
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
  return made;
}

#if MPI_VERSION >= 4
MPI_Session session = MPI_SESSION_NULL;

/// Of a session, as programs make them that may be libraries of others.
MPI_Comm ofSession(int members) {
  if (session == MPI_SESSION_NULL) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  std::vector<int> ranks;
  for (int r = 0; r < ranksOfWorld(); ++r)
    if (((members >> r) & 1) != 0) ranks.push_back(r);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group);
  if (((members >> rankInWorld()) & 1) != 0)
    MPI_Comm_create_from_group(group, "drawn", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return made;
}
#endif

MPI_Comm makeComm(int kind, int members) {
  const int rank = rankInWorld(), ranks = ranksOfWorld(), isMember = (members >> rank) & 1;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  const std::array<int, 2> sizes{ranks, 1}, rounds{1, 0};
  [[maybe_unused]] const int next = (rank + 1) % ranks, one = 1;
  switch (kind) {
    case 0:
      MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &made);
      break;
    case 1:
      MPI_Comm_split(MPI_COMM_WORLD, isMember, rank, &made);
      break;
    case 2:
      MPI_Comm_split(MPI_COMM_WORLD, isMember != 0 ? 0 : MPI_UNDEFINED, -rank, &made);
      break;
    case 3:
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made);
      break;
    case 4:
    case 5:
      return groupOf(members, kind == 4);
    case 6:
      MPI_Cart_create(MPI_COMM_WORLD, 2, sizes.data(), rounds.data(), 0, &made);
      break;
    case 7:
#ifdef OPEN_MPI  // 4.1 may wait for ever in MPI_Dist_graph_create
      MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
#else
      MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
#endif
      break;
    case 8:
      return merged();
#if MPI_VERSION >= 4
    case 9:
      return ofSession(members);
#endif
    default:
      MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return made;
}

/// What programs hang on a communicator, and what changes nothing of its collectives.
void decorate(MPI_Comm comm) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  MPI_Comm_set_name(comm, "drawn");
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &made, nullptr);
    return made;
  }();
  static int value = 0;
  MPI_Comm_set_attr(comm, key, &value);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

Twin twinOf(MPI_Comm comm) {
  Twin twin;
  twin.comm = comm;
  if (!twin.isPart()) return twin;
  PMPI_Comm_dup(twin.comm, &twin.other);
  PMPI_Comm_rank(twin.comm, &twin.rank);
  PMPI_Comm_size(twin.comm, &twin.ranks);
  decorate(twin.comm);
  // Nonblocking calls are taken over where there is a tacc communicator.
  MPI_Barrier(twin.comm);
  return twin;
}

}  // namespace

Twin copyOfWorld() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return twinOf(made);
}

Twin drawTwin(Draws& draws) {
  const int kind = draws.upTo(10), members = draws.upTo(255);
  return twinOf(makeComm(kind, members));
}

void freeTwin(Twin& twin) {
  if (!twin.isPart()) return;
  if (twin.comm != MPI_COMM_NULL) MPI_Comm_free(&twin.comm);
  PMPI_Comm_free(&twin.other);
}

void endSession() {
#if MPI_VERSION >= 4
  if (session != MPI_SESSION_NULL) MPI_Session_finalize(&session);
#endif
}

}  // namespace tacc::test
