// Drawn programs: all collectives in drawn order on several communicators that come and go, blocking ones behind
// nonblocking ones that are under way, which are completed in any order. What they leave is compared with MPI's own
// calls.
#include <memory>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "sequence_call.hpp"

namespace tacc::test {
namespace {

/// By `color`, as MPI_Comm_split; a duplicate of the world where `isCopy`.
Twin makeTwin(int color, int key, bool isCopy) {
  Twin twin;
  if (isCopy)
    MPI_Comm_dup(MPI_COMM_WORLD, &twin.comm);
  else
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &twin.comm);
  if (!twin.isPart()) return twin;
  PMPI_Comm_dup(twin.comm, &twin.other);
  PMPI_Comm_rank(twin.comm, &twin.rank);
  PMPI_Comm_size(twin.comm, &twin.ranks);
  // Nonblocking calls are taken over where there is a tacc communicator.
  MPI_Barrier(twin.comm);
  return twin;
}

Twin drawTwin(Draws& draws) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int kind = draws.upTo(3), members = draws.upTo(255);
  switch (kind) {
    case 0:
      return makeTwin(0, 0, true);
    case 1:  // backwards
      return makeTwin(0, -rank, false);
    case 2:
      return makeTwin((members >> rank) & 1, rank, false);
    default:  // of some ranks, which may be none
      return makeTwin(((members >> rank) & 1) != 0 ? 0 : MPI_UNDEFINED, -rank, false);
  }
}

void freeTwin(Twin& twin) {
  if (!twin.isPart()) return;
  MPI_Comm_free(&twin.comm);
  PMPI_Comm_free(&twin.other);
}

/// Some of them or all, in a form that is drawn.
void complete(std::vector<MPI_Request>& requests, Draws& own, bool isLast) {
  const auto count = static_cast<int>(requests.size());
  int index = 0, flag = 0;
  std::vector<int> indices(requests.size());
  switch (isLast ? 3 : own.upTo(3)) {
    case 0:
      MPI_Testsome(count, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE);
      break;
    case 1:
      MPI_Testany(count, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
      break;
    case 2:
      break;
    default:
      if (isLast || own.upTo(3) == 0) MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  }
}

/// Calls that follow each other, then what they left.
void runBatch(const std::vector<Twin>& twins, Draws& draws, Draws& own, bool mayBeInPlace, int* id) {
  std::vector<std::unique_ptr<SequenceCall>> calls;
  std::vector<MPI_Request> requests;
  for (int left = draws.upTo(14) + 1; left > 0; --left) {
    const Twin& twin = twins[static_cast<std::size_t>(draws.upTo(static_cast<int>(twins.size()) - 1))];
    calls.push_back(std::make_unique<SequenceCall>(twin, draws, own, mayBeInPlace, (*id)++));
    calls.back()->make();
    if (calls.back()->request != MPI_REQUEST_NULL) {
      requests.push_back(calls.back()->request);
      complete(requests, own, false);
    }
  }
  complete(requests, own, true);
  for (const auto& call : calls) call->compare();
}

}  // namespace

void runSequences(unsigned seed, bool isTacc) {
  constexpr int batches = 60;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Draws draws(seed), own(seed + 1000 * (static_cast<unsigned>(rank) + 1));
  std::vector<Twin> twins{makeTwin(0, 0, true)};
  for (int i = 0; i < 3; ++i) twins.push_back(drawTwin(draws));
  int id = 0;
  for (int batch = 0; batch < batches; ++batch) {
    runBatch(twins, draws, own, isTacc, &id);
    if (draws.upTo(5) != 0) continue;
    Twin& ended = twins[static_cast<std::size_t>(1 + draws.upTo(2))];
    freeTwin(ended);
    ended = drawTwin(draws);
  }
  for (Twin& twin : twins) freeTwin(twin);
}

void runSequencesInThreads(unsigned seed, bool isTacc) {
  constexpr int threads = 3, batches = 15;
  Draws draws(seed);
  std::vector<std::vector<Twin>> twins(threads);  // a thread's own
  for (std::vector<Twin>& of : twins)
    for (int i = 0; i < 3; ++i) of.push_back(i == 0 ? makeTwin(0, 0, true) : drawTwin(draws));
  const auto rank = static_cast<unsigned>(twins[0][0].rank);
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      Draws equal(seed + thread), own(seed + thread + 1000 * (rank + 1));
      int id = 1000 * static_cast<int>(thread);
      for (int batch = 0; batch < batches; ++batch) runBatch(twins[thread], equal, own, isTacc, &id);
    });
  for (std::thread& thread : running) thread.join();
  for (std::vector<Twin>& of : twins)
    for (Twin& twin : of) freeTwin(twin);
}

}  // namespace tacc::test
