// Communicators that come and go in every way, callbacks that call collectives, and what goes on beside a collective.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cases.hpp"
#include "corners.hpp"

namespace tacc::test {
namespace {

/// Ranks add up, and all come to a barrier.
void use(MPI_Comm comm, const std::string& what) {
  const int rank = rankIn(comm), ranks = ranksIn(comm);
  int sum = rank, first = rank == ranks - 1 ? 17 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Bcast(&first, 1, MPI_INT, ranks - 1, comm);
  MPI_Barrier(comm);
  if (sum != ranks * (ranks - 1) / 2 || first != 17) complain("other numbers over " + what);
}

void makeAndFree() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  MPI_Group world = MPI_GROUP_NULL, odd = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> members;
  for (int r = ranks - 1; r >= 0; r -= 2) members.push_back(r);
  const bool isMember = std::ranges::count(members, rank) > 0;
  MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &odd);
  for (int round = 0; round < 20; ++round) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_create(MPI_COMM_WORLD, odd, &made);
    if (made != MPI_COMM_NULL) {
      use(made, "MPI_Comm_create");
      MPI_Comm_free(&made);
    }
    if (isMember) {
      MPI_Comm_create_group(MPI_COMM_WORLD, odd, round, &made);
      use(made, "MPI_Comm_create_group");
      MPI_Comm_disconnect(&made);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made);
    use(made, "MPI_Comm_split_type");
    MPI_Comm again = MPI_COMM_NULL;
    MPI_Comm_dup_with_info(made, MPI_INFO_NULL, &again);
    MPI_Comm_free(&made);
    use(again, "a duplicate of what is no more");
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_idup(again, &made, &request);
    use(again, "what is being duplicated");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(made, "MPI_Comm_idup");
    MPI_Comm_free(&again);
    MPI_Comm_free(&made);
    const std::array<int, 2> sizes{ranks, 1}, rounds{1, 0}, kept{1, 0};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes.data(), rounds.data(), 1, &made);
    use(made, "MPI_Cart_create");
    MPI_Cart_sub(made, kept.data(), &again);
    use(again, "MPI_Cart_sub");
    MPI_Comm_free(&again);
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&odd);
  MPI_Group_free(&world);
}

/// The same, and lets the program's requests go on.
void useBeside(MPI_Comm comm, MPI_Request& request, bool isFirst) {
  if (isFirst) use(comm, "one beside a copy");
  int isDone = 0;
  MPI_Test(&request, &isDone, MPI_STATUS_IGNORE);
  if (!isFirst) use(comm, "one beside a copy");
}

/// Halves that meet, and become one again.
void useBothHalves() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  if (ranks < 2) return;
  const bool isLow = rank < ranks / 2;
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL, one = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, isLow ? 0 : 1, rank, &half);
  use(half, "a half");
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, isLow ? ranks / 2 : 0, 3, &both);
  int sum = isLow ? 1 : 100, result = 0, theirs = 0;
  MPI_Comm_remote_size(both, &theirs);
  const int expected = theirs * (isLow ? 100 : 1);
  MPI_Allreduce(&sum, &result, 1, MPI_INT, MPI_SUM, both);
  if (result != expected) complain("MPI_Allreduce between halves");
  std::vector<int> gathered(static_cast<std::size_t>(theirs), -1);
  MPI_Allgather(&sum, 1, MPI_INT, gathered.data(), 1, MPI_INT, both);
  if (std::ranges::count(gathered, isLow ? 100 : 1) != theirs) complain("MPI_Allgather between halves");
  MPI_Barrier(both);
  MPI_Request request = MPI_REQUEST_NULL;
  result = 0;
  MPI_Iallreduce(&sum, &result, 1, MPI_INT, MPI_SUM, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (result != expected) complain("MPI_Iallreduce between halves");
  MPI_Intercomm_merge(both, isLow ? 1 : 0, &one);
  use(one, "MPI_Intercomm_merge");
  MPI_Comm_free(&one);
  MPI_Comm_free(&both);
  use(half, "a half");
  MPI_Comm_free(&half);
}

int copies = 0, deletions = 0;

/// Called by MPI inside MPI_Comm_dup: a collective there is one of the program's.
int copyCalls(MPI_Comm old, int /*key*/, void* /*state*/, void* value, void* to, int* flag) {
  use(old, "the old one in a callback");
  *static_cast<void**>(to) = value;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

int deleteCalls(MPI_Comm comm, int /*key*/, void* /*value*/, void* /*state*/) {
  use(comm, "one that goes, in a callback");
  ++deletions;
  return MPI_SUCCESS;
}

void callInCallbacks() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copyCalls, deleteCalls, &key, nullptr);
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  use(first, "one before it has an attribute");
  MPI_Comm_set_attr(first, key, &copies);
  for (int round = 1; round <= 3; ++round) {
    MPI_Comm_dup(first, &second);
    void* value = nullptr;
    int isThere = 0;
    MPI_Comm_get_attr(second, key, &value, &isThere);
    if (copies != round || isThere == 0 || value != &copies) complain("an attribute was not copied");
    if (round % 2 == 0) use(second, "one with a copied attribute");
    MPI_Comm_free(&second);
    if (deletions != round) complain("an attribute was not deleted");
  }
  MPI_Comm_delete_attr(first, key);
  MPI_Comm_free(&first);
  MPI_Comm_free_keyval(&key);
}

/// MPI_Finalize does so before anything else: MPI still works, and is not finalized.
int useAtTheEnd(MPI_Comm /*self*/, int /*key*/, void* left, void* /*state*/) {
  int isFinalized = 1;
  MPI_Finalized(&isFinalized);
  if (isFinalized != 0) complain("finalized before the attributes of MPI_COMM_SELF are deleted");
  use(MPI_COMM_WORLD, "the world at the end");
  MPI_Comm* const comm = static_cast<MPI_Comm*>(left);
  use(*comm, "a communicator at the end");
  MPI_Comm_free(comm);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  use(made, "one that is made at the end");
  return MPI_SUCCESS;
}

void leaveSomethingForTheEnd() {
  static MPI_Comm left = MPI_COMM_NULL;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, useAtTheEnd, &key, nullptr);
  MPI_Comm_dup(MPI_COMM_WORLD, &left);
  use(left, "what is left for the end");
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &left);
}

/// Ranks wait in a collective for one that waits for memory of theirs.
void readBesideCollective() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  if (ranks < 2) return;
  constexpr int count = 5000;
  std::vector<int> own(count, rank), found(count, -1);
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(own.data(), count * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);
  for (int round = 0; round < 10; ++round) {
    const int reader = round % ranks, owner = (reader + 1) % ranks;
    if (rank == reader) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, window);
      MPI_Get(found.data(), count, MPI_INT, owner, 0, count, MPI_INT, window);
      MPI_Win_unlock(owner, window);
      if (found.back() != owner) complain("MPI_Get beside a collective");
    }
    use(MPI_COMM_WORLD, "the world while one reads");
  }
  MPI_Win_free(&window);
}

#ifdef OPEN_MPI
int failures = 0;

void countFailure(MPI_Comm* /*comm*/, int* /*code*/, ...) { ++failures; }

int classOf(int code) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind;
}

void expectSame(const char* what, int found, int expected) {
  if (classOf(expected) == MPI_SUCCESS) complain(std::string("MPI finds nothing wrong in ") + what);
  if (classOf(found) != classOf(expected))
    complain(std::string(what) + " is an error of class " + std::to_string(classOf(found)) + ", and MPI's of class " +
             std::to_string(classOf(expected)));
}

/// A call beside the same one that goes to MPI.
#define TACC_COMPARE(name, ...) \
  expectSame(#name "(" #__VA_ARGS__ ")", MPI_##name(__VA_ARGS__), PMPI_##name(__VA_ARGS__))

/// What is wrong in what a rank gives beside what it gets, or gets beside what it gives.
void callWronglyOnOneSide(MPI_Comm comm) {
  constexpr int most = 64;
  const int ranks = ranksIn(comm);
  std::array<int, most> from{}, to{}, ones{}, places{};
  ones.fill(1);
  for (int i = 0; i < most; ++i) places[i] = i;
  if (ranks > most) return;
  MPI_Datatype const none = MPI_DATATYPE_NULL;
  MPI_Errhandler ofWorld = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &ofWorld);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // which Open MPI asks for a wrong buffer anywhere
  TACC_COMPARE(Allreduce, from.data(), MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm);
  TACC_COMPARE(Allgather, from.data(), -1, MPI_INT, to.data(), 1, MPI_INT, comm);
  TACC_COMPARE(Allgather, from.data(), 1, none, to.data(), 1, MPI_INT, comm);
  TACC_COMPARE(Alltoall, from.data(), -1, MPI_INT, to.data(), 1, MPI_INT, comm);
  TACC_COMPARE(Gather, from.data(), -1, MPI_INT, to.data(), 1, MPI_INT, 0, comm);
  TACC_COMPARE(Scatter, from.data(), 1, MPI_INT, to.data(), -1, MPI_INT, 0, comm);
  TACC_COMPARE(Scatterv, from.data(), ones.data(), places.data(), MPI_INT, to.data(), -1, MPI_INT, 0, comm);
  TACC_COMPARE(Gatherv, from.data(), -1, MPI_INT, to.data(), ones.data(), places.data(), MPI_INT, 0, comm);
  // In whose place, where there is nothing else?
  const bool isRoot = rankIn(comm) == 0;
  void* const beside = isRoot ? static_cast<void*>(from.data()) : MPI_IN_PLACE;
  TACC_COMPARE(Bcast, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
  TACC_COMPARE(Reduce, beside, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, 0, comm);
  TACC_COMPARE(Gather, beside, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
  TACC_COMPARE(Gatherv, beside, 1, MPI_INT, MPI_IN_PLACE, ones.data(), places.data(), MPI_INT, 0, comm);
  void* const scattered = isRoot ? MPI_IN_PLACE : static_cast<void*>(from.data());
  TACC_COMPARE(Scatter, scattered, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
  TACC_COMPARE(Scatterv, scattered, ones.data(), places.data(), MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
  TACC_COMPARE(Allgatherv, from.data(), -1, MPI_INT, to.data(), ones.data(), places.data(), MPI_INT, comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, ofWorld);
  MPI_Errhandler_free(&ofWorld);
  // One buffer for both, which Open MPI takes: an error on some ranks alone would leave the others waiting.
  if (MPI_Allgather(from.data(), 1, MPI_INT, from.data(), 1, MPI_INT, comm) != MPI_SUCCESS ||
      MPI_Reduce_scatter_block(from.data(), from.data(), 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS)
    complain("one buffer for both is an error");
}

/// Wrong arguments are told as MPI tells them, and the communicator goes on.
void callWrongly() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  use(comm, "one before wrong calls");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int ranks = ranksIn(comm);
  int number = 1, sum = 0, kind = 0;
  MPI_Error_class(MPI_Bcast(&number, 1, MPI_INT, ranks, comm), &kind);
  if (kind != MPI_ERR_ROOT) complain("a root that is not there is an error of class " + std::to_string(kind));
  MPI_Error_class(MPI_Allreduce(&number, &sum, -1, MPI_INT, MPI_SUM, comm), &kind);
  if (kind != MPI_ERR_COUNT) complain("a count of -1 is an error of class " + std::to_string(kind));
  MPI_Error_class(MPI_Bcast(&number, 1, MPI_DATATYPE_NULL, 0, comm), &kind);
  if (kind != MPI_ERR_TYPE) complain("no type is an error of class " + std::to_string(kind));
  if (MPI_Allreduce(&number, &sum, 1, MPI_FLOAT, MPI_BAND, comm) == MPI_SUCCESS) complain("bits of a float");
  callWronglyOnOneSide(comm);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(countFailure, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  failures = 0;
  MPI_Gather(&number, 1, MPI_INT, nullptr, 1, MPI_INT, -5, comm);
  if (failures != 1) complain("an error handler was called " + std::to_string(failures) + " times");
  use(comm, "one after wrong calls");
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

#endif

}  // namespace

/// The first collectives of communicators while others are being copied. A copy is nonblocking: ranks may begin it
/// before what they do on another communicator, or after that.
void useBesideCopies() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  use(MPI_COMM_WORLD, "the world");
  for (int round = 0; round < 40; ++round) {
    MPI_Comm fresh = MPI_COMM_NULL, other = MPI_COMM_NULL, copy = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    const MPI_Comm copied = round % 2 == 0 ? fresh : MPI_COMM_WORLD;
    const bool isLate = round % 4 == 1 && rank == round % ranks;  // on communicators that are not copied
    if (isLate) use(other, "one before a copy");
    MPI_Comm_idup(copied, &copy, &request);
    if (!isLate) useBeside(other, request, rank % 2 == 0);
    useBeside(fresh, request, rank % 2 == 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(copy, "a copy");
    for (MPI_Comm* const comm : {&fresh, &other, &copy}) MPI_Comm_free(comm);
  }
}

void useCornersOfCommunicators() {
  makeAndFree();
  useBothHalves();
  callInCallbacks();
  readBesideCollective();
#ifdef OPEN_MPI  // Debian's MPICH does not look at arguments, and crashes
  callWrongly();
#endif
  leaveSomethingForTheEnd();
}

}  // namespace tacc::test
