#include "contest.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "communicators.hpp"
#include "shared_heap.hpp"
#include "unequal.hpp"

namespace tacc::mpi {

namespace {

constexpr int root = 0;
constexpr std::size_t mostMemory = std::size_t{16} << 20;  // of either buffer

struct Free {
  std::size_t bytes;
  void operator()(void* memory) const noexcept {
    if (!sharedHeap().free(memory)) ::munmap(memory, bytes);
  }
};
using Memory = std::unique_ptr<std::byte, Free>;

/// Touched, so that no call waits for pages. `isReached`: by the other ranks of the host.
Memory makeMemory(std::size_t bytes, bool isReached) {
  constexpr std::size_t line = 64;
  void* memory = nullptr;
  if (isReached) {
    memory = sharedHeap().allocate(bytes, line);
  } else {  // whatever malloc gives in this process
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  }
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), Free{bytes}};
}

/// The call, on memory of the contest. Numbers are floats where there is something to reduce, else bytes.
struct Call {
  Function function;
  std::size_t bytes;
  const Communicator& communicator;
  std::byte *send, *receive;
  // A block of `bytes` for each rank, of Reduce_scatter its part of them, for functions that are told so.
  std::vector<std::size_t> counts;
  std::vector<int> intCounts, intPlaces;

  void countBlocks() {
    const auto ranks = static_cast<std::size_t>(communicator.ranks);
    const std::size_t each = function == Function::Reduce_scatter ? count() / sizeof(float) : bytes;
    counts.assign(ranks, each);
    intCounts.assign(ranks, static_cast<int>(each));
    for (std::size_t r = 0; r < ranks; ++r) intPlaces.push_back(static_cast<int>(r * each));
  }

  /// As a call of the program has them: that takes a part of a short one.
  UnequalBlock blocksOf(std::byte* buffer, Block::Use use) const {
    UnequalScratch& scratch = use == Block::Use::read ? communicator.scratch->send : communicator.scratch->receive;
    return {UnequalElements<int, int>{buffer, intCounts.data(), intPlaces.data(), MPI_BYTE}, communicator.ranks, use,
            scratch};
  }

  taccResult_t runTacc() const {
    const taccComm_t comm = communicator.tacc;
    const std::size_t floats = count() / sizeof(float);
    void* const atRoot = communicator.rank == root ? receive : nullptr;
    switch (function) {
      case Function::Allreduce:
        return taccAllReduce(send, receive, floats, taccFloat, taccSum, comm, nullptr);
      case Function::Reduce:
        return taccReduce(send, atRoot, floats, taccFloat, taccSum, root, comm, nullptr);
      case Function::Scan:
        return taccScan(send, receive, floats, taccFloat, taccSum, comm, nullptr);
      case Function::Exscan:
        return taccExscan(send, receive, floats, taccFloat, taccSum, comm, nullptr);
      case Function::Reduce_scatter_block:
        return taccReduceScatter(send, receive, floats, taccFloat, taccSum, comm, nullptr);
      case Function::Bcast:
        return taccBcast(send, bytes, taccInt8, root, comm, nullptr);
      case Function::Allgather:
        return taccAllGather(send, receive, bytes, taccInt8, comm, nullptr);
      case Function::Alltoall:
        return taccAllToAll(send, receive, bytes, taccInt8, comm, nullptr);
      case Function::Gather:
        return taccGather(send, atRoot, bytes, taccInt8, root, comm, nullptr);
      case Function::Scatter:
        return taccScatter(send, receive, bytes, taccInt8, root, comm, nullptr);
      case Function::Allgatherv: {
        const UnequalBlock to = blocksOf(receive, Block::Use::write);
        return taccAllGatherV(send, to.data(), to.counts(), to.offsets(), taccInt8, comm, nullptr);
      }
      case Function::Alltoallv: {
        const UnequalBlock to = blocksOf(receive, Block::Use::write), from = blocksOf(send, Block::Use::read);
        return taccAllToAllV(from.data(), from.counts(), from.offsets(), to.data(), to.counts(), to.offsets(), taccInt8,
                             comm, nullptr);
      }
      case Function::Gatherv: {
        if (atRoot == nullptr)
          return taccGatherV(send, bytes, nullptr, nullptr, nullptr, taccInt8, root, comm, nullptr);
        const UnequalBlock to = blocksOf(receive, Block::Use::write);
        return taccGatherV(send, bytes, to.data(), to.counts(), to.offsets(), taccInt8, root, comm, nullptr);
      }
      case Function::Scatterv: {
        if (communicator.rank != root)
          return taccScatterV(nullptr, nullptr, nullptr, receive, bytes, taccInt8, root, comm, nullptr);
        const UnequalBlock from = blocksOf(send, Block::Use::read);
        return taccScatterV(from.data(), from.counts(), from.offsets(), receive, bytes, taccInt8, root, comm, nullptr);
      }
      case Function::Reduce_scatter:
        return taccReduceScatterV(send, receive, counts.data(), nullptr, taccFloat, taccSum, comm, nullptr);
      default:
        return taccBarrier(comm, nullptr);
    }
  }

  void runMpi() const {
    const MPI_Comm comm = communicator.mpi;
    const int floats = static_cast<int>(count() / sizeof(float)), each = static_cast<int>(bytes);
    switch (function) {
      case Function::Allreduce:
        PMPI_Allreduce(send, receive, floats, MPI_FLOAT, MPI_SUM, comm);
        return;
      case Function::Reduce:
        PMPI_Reduce(send, receive, floats, MPI_FLOAT, MPI_SUM, root, comm);
        return;
      case Function::Scan:
        PMPI_Scan(send, receive, floats, MPI_FLOAT, MPI_SUM, comm);
        return;
      case Function::Exscan:
        PMPI_Exscan(send, receive, floats, MPI_FLOAT, MPI_SUM, comm);
        return;
      case Function::Reduce_scatter_block:
        PMPI_Reduce_scatter_block(send, receive, floats, MPI_FLOAT, MPI_SUM, comm);
        return;
      case Function::Bcast:
        PMPI_Bcast(send, each, MPI_BYTE, root, comm);
        return;
      case Function::Allgather:
        PMPI_Allgather(send, each, MPI_BYTE, receive, each, MPI_BYTE, comm);
        return;
      case Function::Alltoall:
        PMPI_Alltoall(send, each, MPI_BYTE, receive, each, MPI_BYTE, comm);
        return;
      case Function::Gather:
        PMPI_Gather(send, each, MPI_BYTE, receive, each, MPI_BYTE, root, comm);
        return;
      case Function::Scatter:
        PMPI_Scatter(send, each, MPI_BYTE, receive, each, MPI_BYTE, root, comm);
        return;
      case Function::Allgatherv:
        PMPI_Allgatherv(send, each, MPI_BYTE, receive, intCounts.data(), intPlaces.data(), MPI_BYTE, comm);
        return;
      case Function::Alltoallv:
        PMPI_Alltoallv(send, intCounts.data(), intPlaces.data(), MPI_BYTE, receive, intCounts.data(), intPlaces.data(),
                       MPI_BYTE, comm);
        return;
      case Function::Gatherv:
        PMPI_Gatherv(send, each, MPI_BYTE, receive, intCounts.data(), intPlaces.data(), MPI_BYTE, root, comm);
        return;
      case Function::Scatterv:
        PMPI_Scatterv(send, intCounts.data(), intPlaces.data(), MPI_BYTE, receive, each, MPI_BYTE, root, comm);
        return;
      case Function::Reduce_scatter:
        PMPI_Reduce_scatter(send, receive, intCounts.data(), MPI_FLOAT, MPI_SUM, comm);
        return;
      default:
        PMPI_Barrier(comm);
    }
  }

  /// Bytes that the result's count is said in: what reduce-scatters tell is all that a rank gives.
  std::size_t count() const {
    const auto ranks = static_cast<std::size_t>(communicator.ranks);
    const bool toEach = function == Function::Reduce_scatter_block || function == Function::Reduce_scatter;
    return std::max(toEach ? bytes / ranks : bytes, sizeof(float));
  }
};

/// Seconds of a call, the mean of `calls` that follow each other as in a loop: half as many that go before are left
/// out, as they find the ranks where they have waited and the caches as somebody else left them. An MPI that has not
/// been called for some microseconds takes several times as long at first. An error ends it.
template <class Run>
double timeCalls(int calls, const Communicator& communicator, taccResult_t& result, const Run& run) {
  // Otherwise a rank that is ahead, as the root of a broadcast, takes time of one contestant into that of the other.
  if (result == taccSuccess) result = taccBarrier(communicator.tacc, nullptr);
  for (int i = 0; i < (calls + 1) / 2 && result == taccSuccess; ++i) result = run();
  const double start = clockSeconds();
  for (int i = 0; i < calls && result == taccSuccess; ++i) result = run();
  return (clockSeconds() - start) / calls;
}

/// The contest itself. Sets `outcome` on success.
taccResult_t measure(const Repeated& call, const Communicator& communicator, Rounds rounds, Outcome& outcome) {
  taccResult_t result = taccSuccess;
  const auto timeTacc = [&](int calls) { return timeCalls(calls, communicator, result, [&] { return call.tacc(); }); };
  const auto timeMpi = [&](int calls) {
    return timeCalls(calls, communicator, result, [&] {
      call.mpi();
      return taccSuccess;
    });
  };
  const double start = clockSeconds();
  for (RoundCalls calls = rounds.next(); calls.mpi > 0; calls = rounds.next()) {
    std::array<double, 2> once{};
    once[1] = timeMpi(calls.mpi);
    once[0] = timeTacc(calls.tacc);
    if (result == taccSuccess) result = agreeOnMost(once, communicator);
    if (result != taccSuccess) return result;
    rounds.add({once[0], once[1]});
  }
  rounds.conclude(outcome);
  outcome.cost = clockSeconds() - start;
  return agreeOnMost({&outcome.cost, 1}, communicator);
}

}  // namespace

taccResult_t agreeOnMost(std::span<double> numbers, const Communicator& communicator) {
  return taccAllReduce(numbers.data(), numbers.data(), numbers.size(), taccDouble, taccMax, communicator.tacc, nullptr);
}

double clockSeconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

taccResult_t holdContest(Function function, std::size_t bytes, const Communicator& communicator,
                         const Repeated* repeated, const EarlierRounds& before, Outcome& outcome) {
  outcome = Outcome{};
  outcome.function = function;
  outcome.bytes = bytes;
  if (!Contests::isMeasured(bytes)) return taccSuccess;
  const bool hasCounts =
      Contests::hasOwnCounts(function) || function == Function::Allgatherv || function == Function::Reduce_scatter;
  const bool hasBlocks = (hasCounts && function != Function::Reduce_scatter) || function == Function::Allgather ||
                         function == Function::Alltoall || function == Function::Gather ||
                         function == Function::Scatter;
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  const std::size_t most =
      std::max(hasBlocks ? bytes * ranks : bytes, sizeof(float) * ranks);  // a number each, at least
  if (most > mostMemory) return taccSuccess;
  if (repeated != nullptr) return measure(*repeated, communicator, Rounds(before), outcome);
  // As the program's buffers are, as far as that can be told.
  double unreached = most >= SharedHeap::leastBytes && sharedHeap().held() >= most ? 0 : 1;
  taccResult_t result = agreeOnMost({&unreached, 1}, communicator);
  if (result != taccSuccess) return result;
  const Memory send = makeMemory(most, unreached == 0), receive = makeMemory(most, unreached == 0);
  double lacking = send && receive ? 0 : 1;
  result = agreeOnMost({&lacking, 1}, communicator);
  if (result != taccSuccess || lacking > 0) return result;
  Call call{function, bytes, communicator, send.get(), receive.get(), {}, {}, {}};
  if (hasCounts) call.countBlocks();
  return measure({[&] { return call.runTacc(); }, [&] { call.runMpi(); }}, communicator, Rounds(before), outcome);
}

}  // namespace tacc::mpi
