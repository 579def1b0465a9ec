// Drawn programs: all collectives in drawn order on several communicators that come and go, blocking ones behind
// nonblocking ones that are under way, which are completed in any order. What they leave is compared with MPI's own
// calls.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "beside.hpp"
#include "cases.hpp"
#include "corners.hpp"
#include "sequence_call.hpp"
#include "sequence_comms.hpp"

namespace tacc::test {
namespace {

/// A message from each rank to the next one, of MPI's own, beside the collectives.
class Message {
 public:
  Message(const Twin& world, Draws& draws, std::vector<MPI_Request>& requests)
      : previous_((world.rank + world.ranks - 1) % world.ranks),
        sent_(static_cast<std::size_t>(draws.upTo(2) == 0 ? draws.upTo(200000) : draws.upTo(50)), world.rank),
        received_(sent_.size(), -1) {
    const int next = (world.rank + 1) % world.ranks, count = static_cast<int>(sent_.size());
    requests.resize(requests.size() + 2, MPI_REQUEST_NULL);
    MPI_Isend(sent_.data(), count, MPI_INT, next, 3, world.other, &requests[requests.size() - 2]);
    MPI_Irecv(received_.data(), count, MPI_INT, previous_, 3, world.other, &requests.back());
  }
  void compare() const {
    if (!std::ranges::all_of(received_, [&](int number) { return number == previous_; }))
      complain("a message beside collectives has other numbers");
  }

 private:
  int previous_;
  std::vector<int> sent_, received_;
};

/// Some of them or all, in a form that is drawn.
void complete(std::vector<MPI_Request>& requests, Draws& own, bool isLast) {
  const auto count = static_cast<int>(requests.size());
  int index = 0, flag = 0;
  std::vector<int> indices(requests.size());
  if (isLast && own.upTo(1) == 0) {  // one after the other, among them what is done already
    do MPI_Waitsome(count, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE);
    while (index != MPI_UNDEFINED);
    return;
  }
  switch (isLast ? 3 : own.upTo(6)) {
    case 0:
      MPI_Testsome(count, requests.data(), &index, indices.data(), MPI_STATUSES_IGNORE);
      break;
    case 1:
      MPI_Testany(count, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
      break;
    case 2:
      MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
      break;
    case 3:
      if (isLast || own.upTo(3) == 0) MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
      break;
    case 4:
      if (own.upTo(3) == 0) MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
      break;
    default:
      break;
  }
}

/// Requests of persistent calls are started, each rank in its order, beside a barrier of the first communicator.
/// `isTacc`: tacc serves them.
void startPersistent(const std::vector<std::unique_ptr<SequenceCall>>& calls, const Twin& world, Draws& own,
                     bool isTacc, std::vector<MPI_Request>& requests) {
  std::vector<MPI_Request> fresh;
  for (const auto& call : calls)
    if (call->isPersistent()) fresh.push_back(call->request);
  for (std::size_t i = fresh.size(); i > 1; --i)
    std::swap(fresh[i - 1], fresh[static_cast<std::size_t>(own.upTo(static_cast<int>(i) - 1))]);
  const int before = own.upTo(static_cast<int>(fresh.size()));
  if (before > 0) MPI_Startall(before, fresh.data());
  if (world.comm != MPI_COMM_NULL) MPI_Barrier(world.comm);
  for (auto one = fresh.begin() + before; one != fresh.end(); ++one) MPI_Start(&*one);
  if (!isTacc && waitsForInactiveOnes) {
    for (MPI_Request& one : fresh) MPI_Wait(&one, MPI_STATUS_IGNORE);
    return;
  }
  requests.insert(requests.end(), fresh.begin(), fresh.end());
}

using Others = std::vector<std::unique_ptr<Beside>>;

/// Calls that follow each other, then what they left. `twins[0]` has all ranks. `freed`: the one that ends while calls
/// on it are under way; null for none. `others`: what goes on meanwhile.
void runBatch(std::vector<Twin>& twins, Draws& draws, Draws& own, bool isTacc, Twin* freed, int* id,
              const Others& others = {}) {
  std::vector<std::unique_ptr<SequenceCall>> calls;
  std::vector<MPI_Request> requests{MPI_REQUEST_NULL};
  Message message(twins[0], draws, requests);
  for (const auto& other : others) other->begin(requests);
  for (int left = draws.upTo(14) + 1; left > 0; --left) {
    const Twin& twin = twins[static_cast<std::size_t>(draws.upTo(static_cast<int>(twins.size()) - 1))];
    calls.push_back(std::make_unique<SequenceCall>(twin, draws, own, isTacc, (*id)++));
    calls.back()->make();
    if (calls.back()->request != MPI_REQUEST_NULL && !calls.back()->isPersistent()) {
      requests.push_back(calls.back()->request);
      complete(requests, own, false);
    }
    for (const auto& other : others) other->step();
  }
  for (const auto& other : others) other->finish();
  startPersistent(calls, twins[0], own, isTacc, requests);
  if (freed != nullptr && freed->isPart()) MPI_Comm_free(&freed->comm);
  complete(requests, own, true);
  for (const auto& call : calls)
    if (call->isPersistent()) MPI_Request_free(&call->request);
  for (const auto& call : calls) call->compare();
  message.compare();
  for (const auto& other : others) other->end();
}

}  // namespace

void runSequences(unsigned seed, bool isTacc, bool hasOthers) {
  const int batches = hasOthers ? 15 : 60;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Draws draws(seed), own(seed + 1000 * (static_cast<unsigned>(rank) + 1));
  std::vector<Twin> twins{copyOfWorld()};
  for (int i = 0; i < 3; ++i) twins.push_back(drawTwin(draws));
  int id = 0;
  std::vector<std::unique_ptr<Window>> windows;
  for (int batch = 0; batch < batches; ++batch) {
    Others others;
    if (hasOthers && draws.upTo(2) == 0) others.push_back(drawBeside(draws));
    if (hasOthers && (windows.empty() || draws.upTo(5) == 0)) {
      windows.resize(std::min<std::size_t>(windows.size(), 2));
      const auto of = static_cast<std::size_t>(draws.upTo(static_cast<int>(twins.size()) - 1));
      windows.insert(windows.begin(), drawWindow(twins[of], draws));
    }
    for (const auto& window : windows)
      if (draws.upTo(1) == 0) others.push_back(window->epoch(draws));
    Twin* const ended = draws.upTo(5) == 0 ? &twins[static_cast<std::size_t>(1 + draws.upTo(2))] : nullptr;
    const bool isUnderWay = draws.upTo(1) == 0 && isTacc;
    if (ended != nullptr) ended->isGoing = isUnderWay;
    runBatch(twins, draws, own, isTacc, isUnderWay ? ended : nullptr, &id, others);
    if (ended == nullptr) continue;
    freeTwin(*ended);
    *ended = drawTwin(draws);
  }
  for (Twin& twin : twins) freeTwin(twin);
  windows.clear();
  endSession();
}

namespace {

struct Taken {
  std::ptrdiff_t descriptors;
  long kib;
};
Taken takenByProcess() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  std::ifstream memory("/proc/self/statm");
  long all = 0, resident = 0;
  memory >> all >> resident;
  return {std::distance(descriptors, std::filesystem::directory_iterator()), resident * 4};
}

}  // namespace

void soakSequences(unsigned seed) {
  constexpr int rounds = 10;
  Taken before{};
  for (int round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 3; ++i) runSequences(seed + i, true, false);
    const Taken taken = takenByProcess();
    if (round == 2) before = taken;
    if (round > 2 && taken.descriptors > before.descriptors)
      complain(std::to_string(taken.descriptors) + " descriptors after round " + std::to_string(round) + ", before " +
               std::to_string(before.descriptors));
    if (round == rounds - 1 && taken.kib > before.kib + before.kib / 4)
      complain(std::to_string(taken.kib) + " KiB at the end, before " + std::to_string(before.kib));
  }
}

void soakCommunicators(int number) {
  constexpr int kept = 8;
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<MPI_Comm> comms(kept, MPI_COMM_NULL);
  Draws draws(1);
  Taken before{};
  for (int made = 0; made < number; ++made) {
    MPI_Comm& comm = comms[static_cast<std::size_t>(draws.upTo(kept - 1))];
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    made % 3 == 0 ? MPI_Comm_dup(MPI_COMM_WORLD, &comm)
                  : MPI_Comm_split(MPI_COMM_WORLD, made % 3 == 1 ? 0 : rank % 2, -rank, &comm);
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != ranksIn(comm)) complain("other numbers over communicator " + std::to_string(made));
    if (made % 16 == 0) {  // with a thread
      MPI_Request request = MPI_REQUEST_NULL;
      std::vector<int> numbers(1 << 15, 1);
      MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), 1 << 15, MPI_INT, MPI_SUM, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (made == number / 5) before = takenByProcess();
  }
  const Taken taken = takenByProcess();
  // Parts of the world take descriptors while they are there, and there are more or fewer of them.
  constexpr int descriptorsOfOne = 12;
  const std::string level = std::to_string(taken.descriptors) + " descriptors and " + std::to_string(taken.kib) +
                            " KiB, before " + std::to_string(before.descriptors) + " and " + std::to_string(before.kib);
  if (rank == 0) std::printf("after %d communicators on %d ranks: %s\n", number, ranks, level.c_str());
  if (taken.descriptors > before.descriptors + descriptorsOfOne * kept) complain("too many: " + level);
  if (taken.kib > before.kib + before.kib / 4) complain("too much: " + level);
  for (MPI_Comm& comm : comms)
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

void runSequencesInThreads(unsigned seed, bool isTacc) {
  constexpr int threads = 3, batches = 15;
  Draws draws(seed);
  std::vector<std::vector<Twin>> twins(threads);  // a thread's own
  for (std::vector<Twin>& of : twins)
    for (int i = 0; i < 3; ++i) of.push_back(i == 0 ? copyOfWorld() : drawTwin(draws));
  const auto rank = static_cast<unsigned>(twins[0][0].rank);
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      Draws equal(seed + thread), own(seed + thread + 1000 * (rank + 1));
      int id = 1000 * static_cast<int>(thread);
      for (int batch = 0; batch < batches; ++batch) runBatch(twins[thread], equal, own, isTacc, nullptr, &id);
    });
  for (std::thread& thread : running) thread.join();
  for (std::vector<Twin>& of : twins)
    for (Twin& twin : of) freeTwin(twin);
  endSession();
}

}  // namespace tacc::test
