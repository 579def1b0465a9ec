// An MPI program that knows nothing of tacc, to run with libtacc_mpi preloaded and without:
//   program WHAT mpi|tacc [seed]
// WHAT: calls, in_place, communicators, corners, corners_comms, many, threads, messages, requests, nonblocking,
// nonblocking_threads, persistent, many_persistent, unfinished, cancelled, polled, learned, counted, some_ranks,
// lengthened, alternated, sequences, sequences_threads, beside, far, soak; soak_comms, whose seed is a number of
// communicators; overlap, whose seed is a number of bytes; large, of MiB.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>

#include "cases.hpp"
#include "corners.hpp"

namespace tacc::test {
namespace {

void callEverything(unsigned seed, bool isTacc) {
  Draws draws(seed);
  checkReductions(MPI_COMM_WORLD, draws, isTacc);
  checkMovements(MPI_COMM_WORLD, draws, isTacc);
}

/// The sum of all ranks' `value` over `comm`, which is known.
void expectSum(MPI_Comm comm, int value, int expected, const char* where) {
  int sum = -1;
  if (MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS || sum != expected)
    complain(std::string("MPI_Allreduce over ") + where + " gives " + std::to_string(sum) + " and not " +
             std::to_string(expected));
}

/// Between the halves of the world.
void useIntercommunicator(int rank, int ranks) {
  if (ranks < 2) return;
  const bool isLow = rank < ranks / 2;
  MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, isLow ? 0 : 1, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, isLow ? ranks / 2 : 0, 7, &both);
  expectSum(both, 1, isLow ? ranks - ranks / 2 : ranks / 2, "an intercommunicator");
  // Who is not the root of its group gives arguments that nobody looks at.
  int number = isLow ? 5 : 0;
  const int root = isLow ? (rankIn(half) == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
  MPI_Bcast(&number, 1, MPI_INT, root, both);
  if (number != 5) complain("MPI_Bcast over an intercommunicator");
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

std::ptrdiff_t countDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// Once there is one, further communicators of all ranks take no descriptors, on one host.
/// Of all ranks and of every second one.
void keepMany() {
  constexpr int many = 36;
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<MPI_Comm> comms(many);
  std::ptrdiff_t before = 0;
  for (int i = 0; i < many; ++i) {
    MPI_Comm& comm = comms[static_cast<std::size_t>(i)];
    if (i % 3 == 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
      MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 1 ? 0 : rank % 2, -rank, &comm);
    const int members = ranksIn(comm);
    expectSum(comm, rankIn(comm), members * (members - 1) / 2, "one of many");
    if (i == 2) before = countDescriptors();
  }
  if (countDescriptors() > before) complain("communicators take descriptors");
  for (int i = 0; i < many; ++i) {
    const int one = (i * 7) % many, turned = ranks - 1, lastAlike = turned - (turned - rank) % 2;
    MPI_Comm& comm = comms[static_cast<std::size_t>(one)];
    int first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, comm);
    if (first != (one % 3 == 0 ? 0 : one % 3 == 1 ? turned : lastAlike)) complain("MPI_Bcast over one of many");
    MPI_Comm_free(&comm);
  }
}

void useCommunicators(unsigned seed, bool isTacc) {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  expectSum(MPI_COMM_WORLD, 1, ranks, "the world");
  expectSum(MPI_COMM_SELF, 3, 3, "MPI_COMM_SELF");
  for (int round = 0; round < 3; ++round) {
    MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL, turned = MPI_COMM_NULL, unused = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(copy, rank % 2, rank, &part);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_dup(turned, &unused);
    expectSum(part, 1, ranksIn(part), "a part");
    if (rank % 2 == 0) expectSum(part, 2, 2 * ranksIn(part), "a part whose ranks call more than others");
    MPI_Comm_free(&unused);
    expectSum(turned, rankIn(turned), ranks * (ranks - 1) / 2, "ranks in reverse");
    int first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, turned);
    if (first != ranks - 1) complain("MPI_Bcast over ranks in reverse");
    MPI_Comm_free(&part);
    Draws draws(seed + static_cast<unsigned>(round));
    checkMovements(turned, draws, isTacc);
    MPI_Comm_free(&turned);
    expectSum(copy, 1, ranks, "a duplicate");
    // The last one is left for MPI_Finalize.
    if (round < 2) MPI_Comm_free(&copy);
  }
  useIntercommunicator(rank, ranks);
}

/// Each thread has a communicator of its own; the threads of a rank do not wait for each other.
void callFromThreads() {
  constexpr int threads = 3, calls = 200;
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      MPI_Comm comm = comms[static_cast<std::size_t>(thread)];
      for (int call = 0; call < calls; ++call)
        expectSum(comm, rank + thread + call, ranks * (thread + call) + ranks * (ranks - 1) / 2, "a thread's own");
    });
  for (std::thread& thread : running) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

/// A message that MPI cannot send unless its sender is in MPI: rank 1 comes to the barrier when it has it.
void sendBeforeBarrier() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  expectSum(MPI_COMM_WORLD, 1, ranks, "the world");
  std::vector<int> numbers(2 << 20, rank == 0 ? 17 : 0);
  const int count = static_cast<int>(numbers.size());
  for (int round = 0; ranks > 1 && round < 5; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Isend(numbers.data(), count, MPI_INT, 1, round, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Recv(numbers.data(), count, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (rank < 2 && ranks > 1 && numbers.back() != 17) complain("the message did not come");
}

/// The same as the first call on a communicator, and with a collective that is under way meanwhile: rank 1 waits for it
/// before it comes.
void waitBeforeAllreduce() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  for (int round = 0; round < 5; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < 3; ++call) {
      std::vector<int> numbers(1 << 20, rank == 0 ? call : -1);
      MPI_Request barrier = MPI_REQUEST_NULL, broadcast = MPI_REQUEST_NULL;
      MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
      MPI_Ibcast(numbers.data(), static_cast<int>(numbers.size()), MPI_INT, 0, MPI_COMM_WORLD, &broadcast);
      if (rank == 1) {
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
      }
      expectSum(comm, 1, ranks, "a duplicate");
      MPI_Wait(&barrier, MPI_STATUS_IGNORE);
      MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
      if (numbers.back() != call) complain("the broadcast did not come");
    }
    MPI_Comm_free(&comm);
  }
}

void mergeNothing(void* /*in*/, void* /*inOut*/, int* /*count*/, MPI_Datatype* /*type*/) {}

/// Calls whose numbers the report must show.
void makeCountedCalls() {
  const int ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<double> in(1000 * static_cast<std::size_t>(ranks)), out(in.size());
  for (int i = 0; i < 7; ++i) MPI_Allreduce(in.data(), out.data(), 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Op none = MPI_OP_NULL;
  MPI_Op_create(mergeNothing, 1, &none);
  MPI_Allreduce(in.data(), out.data(), 10, MPI_DOUBLE, none, MPI_COMM_WORLD);
  MPI_Op_free(&none);
  MPI_Allreduce(in.data(), out.data(), 10, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(in.data(), out.data(), 10, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(in.data(), out.data(), 10, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Bcast(in.data(), 50, MPI_SHORT, 0, MPI_COMM_WORLD);
  MPI_Bcast(in.data(), 0, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Alltoall(in.data(), 1000, MPI_DOUBLE, out.data(), 1000, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

/// Communicators of every second rank: ten with 4 calls, and one with 40. One of all ranks is called once.
void callAmongSomeRanks() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  for (int round = 0; round <= 10; ++round) {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &some);
    for (int call = 0; call < (round < 10 ? 4 : 40); ++call)
      expectSum(some, call + rank % 2, ranksIn(some) * (call + rank % 2), "every second rank");
    MPI_Comm_free(&some);
  }
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  expectSum(all, 1, ranks, "all ranks");
  MPI_Comm_free(&all);
}

/// All functions with counts for each rank, first with short blocks, for long, and then with long ones.
void lengthenUnequalCalls() {
  constexpr int calls = 1300, shortCalls = 800;
  const int ranks = ranksIn(MPI_COMM_WORLD), self = rankIn(MPI_COMM_WORLD);
  std::vector<int> counts, places, own, in, out;
  for (int call = 0; call < calls; ++call) {
    const int least = call < shortCalls ? 2 : 4000;
    const auto countOf = [&](int rank) { return least + rank; };  // elements of a rank's block
    const auto value = [&](int from, int to) { return 100 * call + 10 * from + to; };
    counts.clear();
    places.clear();
    int all = 0;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(countOf(r));
      places.push_back(all);
      all += countOf(r);
    }
    const int root = call % ranks;
    const auto allOf = static_cast<std::size_t>(all), ownOf = static_cast<std::size_t>(countOf(self));
    // The whole block of rank r.
    const auto expect = [&](int r, int expected, const char* what) {
      const auto begin = out.begin() + places[static_cast<std::size_t>(r)];
      if (std::any_of(begin, begin + countOf(r), [&](int found) { return found != expected; }))
        complain(std::string(what) + " of call " + std::to_string(call) + " gives other numbers");
    };
    own.assign(ownOf, value(self, 0));
    out.assign(allOf, -1);
    MPI_Allgatherv(own.data(), countOf(self), MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                   MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r) expect(r, value(r, 0), "MPI_Allgatherv");
    out.assign(allOf, -1);
    MPI_Gatherv(own.data(), countOf(self), MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, root,
                MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r) expect(r, self == root ? value(r, 0) : -1, "MPI_Gatherv");
    in.clear();
    for (int r = 0; r < ranks; ++r) in.insert(in.end(), static_cast<std::size_t>(countOf(r)), value(root, r));
    own.assign(ownOf, -1);
    MPI_Scatterv(in.data(), counts.data(), places.data(), MPI_INT, own.data(), countOf(self), MPI_INT, root,
                 MPI_COMM_WORLD);
    if (own != std::vector<int>(ownOf, value(root, self))) complain("MPI_Scatterv gives other numbers");
    // A rank sends all others as much as it has for itself.
    in.clear();
    std::vector<int> sent(counts.size(), countOf(self)), from;
    for (int r = 0; r < ranks; ++r) {
      from.push_back(static_cast<int>(in.size()));
      in.insert(in.end(), ownOf, value(self, r));
    }
    out.assign(allOf, -1);
    MPI_Alltoallv(in.data(), sent.data(), from.data(), MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                  MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r) expect(r, value(r, self), "MPI_Alltoallv");
    in.assign(allOf, value(self, 0));
    own.assign(ownOf, -1);
    MPI_Reduce_scatter(in.data(), own.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r, 0);
    if (own != std::vector<int>(ownOf, sum)) complain("MPI_Reduce_scatter gives other numbers");
  }
}

/// Short and long blocks in turns, of functions that tell each rank the counts of all.
void alternateUnequalCalls() {
  const auto ranks = static_cast<std::size_t>(ranksIn(MPI_COMM_WORLD));
  for (int call = 0; call < 20; ++call) {
    const int count = call % 2 == 0 ? 2 : 4096;
    const std::vector<int> counts(ranks, count);
    std::vector<int> places, in(ranks * static_cast<std::size_t>(count), call), out(in.size(), -1);
    for (std::size_t r = 0; r < ranks; ++r) places.push_back(static_cast<int>(r) * count);
    MPI_Allgatherv(in.data(), count, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
    if (out != in) complain("MPI_Allgatherv gives other numbers");
    MPI_Reduce_scatter(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (out[0] != static_cast<int>(ranks) * call) complain("MPI_Reduce_scatter gives other numbers");
  }
}

/// Requests that nobody completes. With `seed` 2 rank 0 alone has called.
void leaveUnfinished(unsigned seed) {
  MPI_Barrier(MPI_COMM_WORLD);
  static std::vector<int> in(1 << 16, 1), out(1 << 16);
  MPI_Request request = MPI_REQUEST_NULL;
  const auto count = static_cast<int>(in.size());
  if (seed == 1 || rankIn(MPI_COMM_WORLD) == 0)
    MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (seed == 1) MPI_Request_free(&request);
}

/// MPI cancels no collectives: it is an error, and the call goes on.
void cancelCollective() {
  const int ranks = ranksIn(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<int> in(1 << 16, 1), out(in.size());
  for (int round = 0; round < 3; ++round) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (MPI_Cancel(&request) == MPI_SUCCESS) complain("MPI_Cancel of a collective succeeds");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (out.back() != ranks) complain("a collective that was to be cancelled gives " + std::to_string(out.back()));
    out.back() = -1;
  }
}

/// Rank 0 alone gives much: how much others move no rank knows.
void moveUnequally(int count) {
  const auto ranks = static_cast<std::size_t>(ranksIn(MPI_COMM_WORLD));
  const bool isFirst = rankIn(MPI_COMM_WORLD) == 0;
  const std::vector<int> sent(ranks, isFirst ? count : 1);
  std::vector<int> received(ranks, 1), from, to;
  received[0] = count;
  for (std::size_t r = 0; r < ranks; ++r) {
    from.push_back(static_cast<int>(r) * sent[0]);
    to.push_back(r == 0 ? 0 : count + static_cast<int>(r) - 1);
  }
  std::vector<int> in(ranks * static_cast<std::size_t>(sent[0]), count + rankIn(MPI_COMM_WORLD));
  std::vector<int> out(static_cast<std::size_t>(count) + ranks - 1, -1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(in.data(), sent.data(), from.data(), MPI_INT, out.data(), received.data(), to.data(), MPI_INT,
                 MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (out.front() != count || out.back() != count + static_cast<int>(ranks) - 1)
    complain("MPI_Ialltoallv gives other numbers");
}

/// What nonblocking calls with own counts usually move is agreed on in blocking ones.
void learnUnequalBytes() {
  constexpr int longCount = 100000, shortCount = 10;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 0; call < 5; ++call) moveUnequally(longCount);  // nothing is known
  MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 0; call < 3; ++call) moveUnequally(longCount);
  for (int call = 0; call < 40; ++call) moveUnequally(shortCount);  // long ones are expected
  MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 0; call < 2; ++call) moveUnequally(shortCount);
}

int run(std::string_view what, unsigned seed, bool isTacc) {
  if (what == "calls")
    callEverything(seed, isTacc);
  else if (what == "communicators" || what == "communicators_threads")
    useCommunicators(seed, isTacc);
  else if (what == "in_place")
    checkInPlace(isTacc);
  else if (what == "corners")
    useCornersOfData(isTacc);
  else if (what == "corners_comms")
    useCornersOfCommunicators();
  else if (what == "copies")
    useBesideCopies();
  else if (what == "many")
    keepMany();
  else if (what == "threads")
    callFromThreads();
  else if (what == "messages")
    sendBeforeBarrier();
  else if (what == "requests")
    waitBeforeAllreduce();
  else if (what == "nonblocking")
    runNonblocking(seed, 25, isTacc);
  else if (what == "nonblocking_threads")
    runNonblockingInThreads(seed, isTacc);
  else if (what == "complaints_threads")
    freeWhileOthersComplain();
  else if (what == "persistent")
    runPersistent(seed, isTacc);
  else if (what == "many_persistent")
    makeManyPersistent();
  else if (what == "sequences")
    runSequences(seed, isTacc, false);
  else if (what == "beside")
    runSequences(seed, isTacc, true);
  else if (what == "sequences_threads")
    runSequencesInThreads(seed, isTacc);
  else if (what == "far")
    reachFar(isTacc);
  else if (what == "large")
    moveMuch(static_cast<std::size_t>(seed) << 20, isTacc);
  else if (what == "counts")
    countBeyondInt(static_cast<std::size_t>(seed) << 20);
  else if (what == "soak")
    soakSequences(seed);
  else if (what == "soak_comms")
    soakCommunicators(static_cast<int>(seed));
  else if (what == "overlap")
    measureOverlap(seed);
  else if (what == "unfinished")
    leaveUnfinished(seed);
  else if (what == "cancelled")
    cancelCollective();
  else if (what == "polled")
    pollCollective();
  else if (what == "learned")
    learnUnequalBytes();
  else if (what == "counted")
    makeCountedCalls();
  else if (what == "some_ranks")
    callAmongSomeRanks();
  else if (what == "alternated")
    alternateUnequalCalls();
  else if (what == "lengthened")
    lengthenUnequalCalls();
  else
    return 2;
  return 0;
}

}  // namespace
}  // namespace tacc::test

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const unsigned seed = argc > 3 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : 1;
  const bool isTacc = argc > 2 && std::string_view(argv[2]) == "tacc";
  if (what.ends_with("threads")) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
      std::puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
      MPI_Finalize();
      return 0;
    }
  } else {
    MPI_Init(&argc, &argv);
  }
  const int code = tacc::test::run(what, seed, isTacc);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Finalize();
  if (rank == 0 && code == 0) std::puts("all right");
  return code;
}
