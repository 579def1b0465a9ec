// Collectives that return a request: drawn programs over several communicators, beside MPI's own requests, completed in
// all forms that MPI has and in any order.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "nonblocking_collective.hpp"
#include "nonblocking_unequal.hpp"

namespace tacc::test {
namespace {

void expectDone(bool isDone, const char* what) {
  if (!isDone) complain(std::string(what) + " does not complete what it says");
}

/// Completes all requests, each call in a form that is drawn. Draws differ from rank to rank.
void completeInAnyForm(std::vector<MPI_Request>& requests, std::mt19937& draws) {
  const auto count = static_cast<int>(requests.size());
  std::vector<int> indices(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  const auto openOnes = [&] {
    return std::ranges::count_if(requests, [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
  };
  while (openOnes() > 0) {
    MPI_Request& one = requests[draws() % requests.size()];
    int flag = 0, index = 0, done = 0;
    switch (draws() % 10) {
      case 0:
        MPI_Wait(&one, MPI_STATUS_IGNORE);
        expectDone(one == MPI_REQUEST_NULL, "MPI_Wait");
        break;
      case 1:
        MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
        expectDone((flag != 0) == (one == MPI_REQUEST_NULL), "MPI_Test");
        break;
      case 2:
        MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
        expectDone(index >= 0 && index < count && requests[static_cast<std::size_t>(index)] == MPI_REQUEST_NULL,
                   "MPI_Waitany");
        break;
      case 3:
        MPI_Testany(count, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
        break;
      case 4:
        MPI_Waitsome(count, requests.data(), &done, indices.data(), statuses.data());
        expectDone(done > 0, "MPI_Waitsome");
        for (int i = 0; i < done; ++i)
          expectDone(requests[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] == MPI_REQUEST_NULL,
                     "MPI_Waitsome");
        break;
      case 5:
        MPI_Testsome(count, requests.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
        break;
      case 6:
        MPI_Testall(count, requests.data(), &flag, statuses.data());
        expectDone((flag != 0) == (openOnes() == 0), "MPI_Testall");
        break;
      case 7:
        if (one == MPI_REQUEST_NULL) break;
        MPI_Request_get_status(one, &flag, MPI_STATUS_IGNORE);
        expectDone(one != MPI_REQUEST_NULL, "MPI_Request_get_status");
        break;
      case 8: {  // a few of them
        const auto few = 1 + draws() % requests.size();
        MPI_Waitall(static_cast<int>(few), requests.data(), statuses.data());
        break;
      }
      default:
        if (draws() % 4 != 0) break;
        MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
        expectDone(openOnes() == 0, "MPI_Waitall");
    }
  }
}

std::unique_ptr<Drawn> draw(MPI_Comm comm, Draws& draws, int id, bool isTacc) {
  if (draws.upTo(1) == 0) return std::make_unique<Collective>(comm, draws, id, isTacc);
  return std::make_unique<UnequalCollective>(comm, draws, id, isTacc);
}

int rankIn(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

/// Communicators whose ranks stand in different orders. All have a tacc communicator: the barriers see to that.
std::vector<MPI_Comm> makeComms() {
  std::vector<MPI_Comm> comms(3, MPI_COMM_NULL);
  const int rank = rankIn(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
  for (MPI_Comm comm : comms) MPI_Barrier(comm);
  return comms;
}

/// Messages of MPI's own, around a ring.
struct Ring {
  explicit Ring(MPI_Comm comm, std::size_t count) : sent(count, rankIn(comm)), received(count, -1) {
    int ranks = 1;
    PMPI_Comm_size(comm, &ranks);
    before = (rankIn(comm) + ranks - 1) % ranks;
    MPI_Irecv(received.data(), static_cast<int>(count), MPI_INT, before, 5, comm, &requests[0]);
    MPI_Isend(sent.data(), static_cast<int>(count), MPI_INT, (rankIn(comm) + 1) % ranks, 5, comm, &requests[1]);
  }
  void check() const {
    if (std::ranges::count(received, before) != std::ssize(received)) complain("a message is wrong");
  }
  std::vector<int> sent, received;
  int before = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

void runRound(const std::vector<MPI_Comm>& comms, Draws& draws, std::mt19937& ownDraws, int* id, bool isTacc) {
  // Per communicator the same on all ranks; among communicators every rank has an order of its own.
  std::vector<std::vector<std::unique_ptr<Drawn>>> queues(comms.size());
  std::vector<std::size_t> order;
  for (int left = draws.upTo(8) + 1; left > 0; --left) {
    const auto at = static_cast<std::size_t>(draws.upTo(static_cast<int>(comms.size()) - 1));
    // Parts need the same draws on all of their ranks, which all ranks have.
    queues[at].push_back(draw(comms[at], draws, (*id)++, isTacc));
    order.push_back(at);
  }
  std::shuffle(order.begin(), order.end(), ownDraws);
  const Ring ring(comms[0], draws.upTo(1) == 0 ? 10 : 300000);
  std::vector<MPI_Request> requests(ring.requests, ring.requests + 2);
  std::vector<std::size_t> begun(comms.size(), 0);
  for (const std::size_t at : order) requests.push_back(queues[at][begun[at]++]->begin());
  requests.push_back(MPI_REQUEST_NULL);
  std::shuffle(requests.begin(), requests.end(), ownDraws);
  // A blocking call behind those that are under way, on a communicator where it is everybody's next.
  if (draws.upTo(2) == 0) MPI_Barrier(comms[0]);
  completeInAnyForm(requests, ownDraws);
  ring.check();
  for (const auto& queue : queues)
    for (const auto& collective : queue) collective->check();
}

void freeThem(std::vector<MPI_Comm>& comms) {
  for (MPI_Comm& comm : comms) {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
}

/// One thread frees a communicator while another one waits for what is under way on it.
void freeWhileOthersWait() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  constexpr int count = 1 << 12;
  static std::vector<int> ones(count, 1), never(count);  // for as long as the library may use them
  for (int round = 0; round < 30; ++round) {
    std::vector<int> in(count, 1 + round), out(in.size());
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);  // tacc's then
    MPI_Request request = MPI_REQUEST_NULL, freed = MPI_REQUEST_NULL;
    MPI_Iallreduce(ones.data(), never.data(), count, MPI_INT, MPI_SUM, comm, &freed);
    MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, &request);
    MPI_Request_free(&freed);
    std::thread waiting([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    MPI_Comm_free(&comm);
    waiting.join();
    if (out != std::vector<int>(in.size(), ranks * (1 + round)))
      complain("MPI_Iallreduce on a communicator that is freed gives other numbers");
  }
}

/// What an error handler and the thread that frees its communicator know of each other.
struct Complaints {
  std::atomic<bool> isComplaining = false, isFreeing = false, isFreed = false;
  bool freesItself = false;
};
Complaints complaints;

/// It has a communicator as long as it runs, also where another thread is about to free that.
void complainSlowly(MPI_Comm* comm, int* /*code*/, ...) {
  constexpr int longEnough = 200;  // turns, in which one that does not wait has freed it
  complaints.isComplaining = true;
  if (complaints.freesItself) {
    MPI_Comm_free(comm);
    return;
  }
  while (!complaints.isFreeing) std::this_thread::yield();
  for (int turn = 0; turn < longEnough; ++turn) std::this_thread::yield();
  if (complaints.isFreed) complain("a communicator is freed while a thread is in its error handler");
  int ranks = 0;
  if (MPI_Comm_size(*comm, &ranks) != MPI_SUCCESS || ranks != 2) complain("an error handler's communicator");
}

#ifdef PERSISTENT
/// MPI lets each rank start them in an order of its own, also before a blocking call that another rank makes first.
void startInOwnOrder(std::vector<MPI_Request>& requests, std::mt19937& ownDraws, MPI_Comm between) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), ownDraws);
  const std::size_t before = ownDraws() % (order.size() + 1);
  for (std::size_t i = 0; i <= order.size(); ++i) {
    if (i == before) {
      int one = 1, sum = 0, ranks = 0;
      MPI_Comm_size(between, &ranks);
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, between);
      if (sum != ranks) complain("a blocking MPI_Allreduce between persistent ones");
    }
    if (i < order.size()) MPI_Start(&requests[order[i]]);
  }
}
#endif

}  // namespace

void runNonblocking(unsigned seed, int rounds, bool isTacc) {
  Draws draws(seed);
  std::mt19937 ownDraws(seed + 100 * static_cast<unsigned>(rankIn(MPI_COMM_WORLD)));
  std::vector<MPI_Comm> comms = makeComms();
  int id = 0;
  for (int round = 0; round < rounds; ++round) runRound(comms, draws, ownDraws, &id, isTacc);

  // Communicators that are freed while something is under way on them. Not of what MPI serves: Open MPI 4.1 crashes.
  std::vector<std::unique_ptr<Drawn>> last;
  std::vector<MPI_Request> requests;
  for (MPI_Comm comm : comms) {
    last.push_back(draw(comm, draws, id++, isTacc));
    requests.push_back(last.back()->begin());
  }
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (last[i]->isTaken()) MPI_Comm_free(&comms[i]);
  }
  completeInAnyForm(requests, ownDraws);
  for (const auto& collective : last) collective->check();
  freeThem(comms);
}

void runNonblockingInThreads(unsigned seed, bool isTacc) {
  constexpr int threads = 3;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (isTacc && ranks > 1) freeWhileOthersWait();
  std::vector<std::vector<MPI_Comm>> comms;
  for (int thread = 0; thread < threads; ++thread) comms.push_back(makeComms());
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      const unsigned own = seed + static_cast<unsigned>(thread);
      Draws draws(own);
      std::mt19937 ownDraws(own + 100 * static_cast<unsigned>(rankIn(MPI_COMM_WORLD)));
      int id = 100 * thread;
      for (int round = 0; round < 8; ++round)
        runRound(comms[static_cast<std::size_t>(thread)], draws, ownDraws, &id, isTacc);
    });
  for (std::thread& thread : running) thread.join();
  for (auto& of : comms) freeThem(of);
}

void freeWhileOthersComplain() {
  const int rank = rankIn(MPI_COMM_WORLD);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(complainSlowly, &handler);
  for (int round = 0; round < 6; ++round) {
    complaints.isComplaining = complaints.isFreeing = complaints.isFreed = false;
    complaints.freesItself = round % 2 != 0;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Barrier(comm);
    // Rank 1 gives less than rank 0 expects.
    const std::vector<int> counts{4000, rank == 0 ? 4020 : 4000}, places{0, 4000};
    std::vector<int> in(4000, rank), out(8020);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgatherv(in.data(), 4000, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, comm, &request);
    int code = MPI_SUCCESS;
    std::thread waiting([&] { code = MPI_Wait(&request, MPI_STATUS_IGNORE); });
    while (!complaints.isComplaining) std::this_thread::yield();
    complaints.isFreeing = true;
    if (!complaints.freesItself) MPI_Comm_free(&comm);
    complaints.isFreed = true;
    waiting.join();
    if (code == MPI_SUCCESS) complain("counts that differ are no error");
  }
  MPI_Errhandler_free(&handler);
}

void runPersistent([[maybe_unused]] unsigned seed, [[maybe_unused]] bool isTacc) {
#ifdef PERSISTENT
  Draws draws(seed);
  std::mt19937 ownDraws(seed + 100 * static_cast<unsigned>(rankIn(MPI_COMM_WORLD)));
  std::vector<MPI_Comm> comms = makeComms();
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Drawn>> collectives;
    std::vector<MPI_Request> requests;
    for (int i = 0; i < 6; ++i) {
      MPI_Comm comm = comms[static_cast<std::size_t>(draws.upTo(2))];
      auto made = draw(comm, draws, 10 * round + i, isTacc);
      if (!made->isTaken() && !servesPersistentOnes) continue;
      collectives.push_back(std::move(made));
      requests.push_back(collectives.back()->makePersistent());
    }
    const std::vector<MPI_Request> made = requests;
    int flag = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE);
    expectDone(flag != 0, "MPI_Testall of inactive requests");
    for (int start = 0; start < 3; ++start) {
      for (const auto& collective : collectives) collective->fill();
      MPI_Comm between = comms[static_cast<std::size_t>(draws.upTo(2))];
      if (draws.upTo(2) == 0)
        MPI_Startall(static_cast<int>(requests.size()), requests.data());
      else
        startInOwnOrder(requests, ownDraws, between);
      if (ownDraws() % 2 == 0) {
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      } else {
        int left = static_cast<int>(requests.size()), index = 0;
        for (; left > 0; --left) {
          MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
          expectDone(index != MPI_UNDEFINED, "MPI_Waitany of persistent requests");
        }
        MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
        expectDone(index == MPI_UNDEFINED, "MPI_Waitany of inactive requests");
      }
      if (requests != made) complain("a persistent request has changed");
      for (const auto& collective : collectives) collective->check();
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
  freeThem(comms);
#else
  std::puts("skipped: this MPI has no persistent collectives");
#endif
}

void makeManyPersistent() {
#ifdef PERSISTENT
  constexpr int many = 80;
  const int rank = rankIn(MPI_COMM_WORLD);
  std::mt19937 ownDraws(static_cast<unsigned>(rank));
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 2; ++round) {
    std::vector<int> in(many), out(many, -1);
    std::vector<MPI_Request> requests(many);
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<int>(i) + rank;
      PERSISTENT(Allreduce_init)(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    }
    startInOwnOrder(requests, ownDraws, MPI_COMM_WORLD);
    MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] != static_cast<int>(i) * ranks + ranks * (ranks - 1) / 2) complain("one of many persistent ones");
    std::shuffle(requests.begin(), requests.end(), ownDraws);
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
#else
  std::puts("skipped: this MPI has no persistent collectives");
#endif
}

}  // namespace tacc::test
