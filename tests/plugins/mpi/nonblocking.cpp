// Collectives that return a request: drawn programs over several communicators, beside MPI's own requests, completed in
// all forms that MPI has and in any order. Numbers are such that everybody knows all of them.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "cases.hpp"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name
#endif

namespace tacc::test {
namespace {

constexpr int kinds = 9;
const char* const kindNames[kinds] = {"allreduce", "bcast",   "reduce", "reduce_scatter_block", "allgather", "alltoall",
                                      "gather",    "scatter", "barrier"};

/// Whether this MPI's own persistent collectives do what they should. Those of MPICH 4.0 do not: gather and scatter may
/// move nothing, derived types end in a failed assertion, inactive requests are not complete.
#ifdef OPEN_MPI
constexpr bool servesPersistentOnes = true;
#else
constexpr bool servesPersistentOnes = false;
#endif

/// What rank `rank` has at `i` in collective `id`.
int number(int id, int rank, std::size_t i) { return 1000 * id + 7 * rank + static_cast<int>(i % 13); }

/// Two numbers as one element, which is no type that is known by its name: it goes through copies.
MPI_Datatype pairType() {
  static const MPI_Datatype type = [] {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
  }();
  return type;
}

/// One collective: what it is, its buffers, and what is to come of it.
class Collective {
 public:
  Collective(MPI_Comm comm, Draws& draws, int id, bool isTacc)
      : comm_(comm),
        id_(id),
        kind_(draws.upTo(kinds - 1)),
        root_(0),
        count_(2 * static_cast<std::size_t>(draws.count() / 2)),
        inPlace_(draws.upTo(2) == 0),
        isTacc_(isTacc) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &ranks_);
    root_ = draws.upTo(ranks_ - 1);
    // MPICH 4.0 fails in MPI_Ialltoall and MPI_Ireduce in place; no type for what it passes on either.
    isPassed_ = kind_ != 8 && draws.upTo(4) == 0;
    if (kind_ == 5 || kind_ == 2 || isPassed_) inPlace_ = false;
    fill();
  }
  std::string text() const {
    return std::string(kindNames[kind_]) + " " + std::to_string(id_) + " of " + std::to_string(count_) + " on " +
           std::to_string(ranks_) + " ranks" + (inPlace_ ? " in place" : "");
  }

  /// Whether the library serves it, and not MPI: faults of MPI's own, as they were found, are none of this test.
  bool isTaken() const { return isTacc_ && !isPassed_ && ranks_ > 1; }

  /// What a rank has for each start of a persistent one.
  void fill() {
    const std::size_t many = count_ * static_cast<std::size_t>(ranks_);
    // Buffers of no length have addresses too: Open MPI 4.1 takes two that are null for one in MPIX_Reduce_init.
    send_.reserve(many + 1);
    receive_.reserve(many + 1);
    send_.assign(many, 0);
    receive_.assign(many, -1);
    expected_.assign(many, -1);
    for (std::size_t i = 0; i < many; ++i) send_[i] = number(id_, rank_, i);
    const auto sum = [&](std::size_t i) {
      int all = 0;
      for (int rank = 0; rank < ranks_; ++rank) all += number(id_, rank, i);
      return all;
    };
    const std::size_t own = count_ * static_cast<std::size_t>(rank_);
    const bool isRoot = rank_ == root_;
    switch (kind_) {
      case 0:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = sum(i);
        if (inPlace_) std::copy_n(send_.begin(), count_, receive_.begin());
        break;
      case 1:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = number(id_, root_, i);
        if (isRoot) receive_ = expected_;
        break;
      case 2:
        for (std::size_t i = 0; isRoot && i < count_; ++i) expected_[i] = sum(i);
        break;
      case 3:
        if (inPlace_) receive_ = expected_ = send_;
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = sum(own + i);
        break;
      case 4:
      case 6:
        for (std::size_t i = 0; (kind_ == 4 || isRoot) && i < many; ++i)
          expected_[i] = number(id_, static_cast<int>(i / count_), i % count_);
        if (inPlace_ && (kind_ == 4 || isRoot))
          std::copy_n(send_.begin(), count_, receive_.begin() + static_cast<std::ptrdiff_t>(own));
        break;
      case 5:
        for (std::size_t i = 0; i < many; ++i)
          expected_[i] = number(id_, static_cast<int>(i / count_), own + i % count_);
        break;
      case 7:
        for (std::size_t i = 0; i < count_; ++i) expected_[i] = number(id_, root_, own + i);
        if (inPlace_ && isRoot) expected_ = receive_;
        break;
      default:
        break;
    }
  }

  MPI_Request begin() {
    MPI_Request request = MPI_REQUEST_NULL;
    const Given g = given();
    int code = MPI_SUCCESS;
    switch (kind_) {
      case 0:
        code = MPI_Iallreduce(g.send, receive_.data(), g.count, MPI_INT, g.op, comm_, &request);
        break;
      case 1:
        code = MPI_Ibcast(receive_.data(), g.elements, g.type, root_, comm_, &request);
        break;
      case 2:
        code = MPI_Ireduce(g.send, receive_.data(), g.count, MPI_INT, g.op, root_, comm_, &request);
        break;
      case 3:
        code = MPI_Ireduce_scatter_block(g.send, receive_.data(), g.count, MPI_INT, g.op, comm_, &request);
        break;
      case 4:
        code = MPI_Iallgather(g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, comm_, &request);
        break;
      case 5:
        code = MPI_Ialltoall(g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, comm_, &request);
        break;
      case 6:
        code = MPI_Igather(g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, root_, comm_, &request);
        break;
      case 7:
        code = MPI_Iscatter(send_.data(), g.count, MPI_INT, g.receive, g.elements, g.type, root_, comm_, &request);
        break;
      default:
        code = MPI_Ibarrier(comm_, &request);
    }
    if (code != MPI_SUCCESS) complain(text() + " returns " + std::to_string(code));
    return request;
  }

#ifdef PERSISTENT
  MPI_Request makePersistent() {
    MPI_Request request = MPI_REQUEST_NULL;
    const Given g = given();
    MPI_Info none = MPI_INFO_NULL;
    switch (kind_) {
      case 0:
        PERSISTENT(Allreduce_init)(g.send, receive_.data(), g.count, MPI_INT, g.op, comm_, none, &request);
        break;
      case 1:
        PERSISTENT(Bcast_init)(receive_.data(), g.elements, g.type, root_, comm_, none, &request);
        break;
      case 2:
        PERSISTENT(Reduce_init)(g.send, receive_.data(), g.count, MPI_INT, g.op, root_, comm_, none, &request);
        break;
      case 3:
        PERSISTENT(Reduce_scatter_block_init)
        (g.send, receive_.data(), g.count, MPI_INT, g.op, comm_, none, &request);
        break;
      case 4:
        PERSISTENT(Allgather_init)
        (g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, comm_, none, &request);
        break;
      case 5:
        PERSISTENT(Alltoall_init)
        (g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, comm_, none, &request);
        break;
      case 6:
        PERSISTENT(Gather_init)
        (g.send, g.count, MPI_INT, receive_.data(), g.elements, g.type, root_, comm_, none, &request);
        break;
      case 7:
        PERSISTENT(Scatter_init)
        (send_.data(), g.count, MPI_INT, g.receive, g.elements, g.type, root_, comm_, none, &request);
        break;
      default:
        PERSISTENT(Barrier_init)(comm_, none, &request);
    }
    return request;
  }
#endif

  void check() const {
    // In place MPI may leave anything behind the block.
    const std::size_t checked = kind_ == 3 && inPlace_ ? count_ : receive_.size();
    for (std::size_t i = 0; i < checked; ++i)
      if (receive_[i] != expected_[i])
        complain(text() + ": number " + std::to_string(i) + " is " + std::to_string(receive_[i]) + " and not " +
                 std::to_string(expected_[i]));
  }

 private:
  struct Given {
    const void* send;
    void* receive;
    int count, elements;
    MPI_Datatype type;  // what `elements` are of
    MPI_Op op;
  };
  Given given() {
    // A rank with another type that has the same numbers.
    const bool isPair = rank_ % 2 == 1;
    const bool isRoot = rank_ == root_;
    const int count = static_cast<int>(count_);
    const bool sendsInPlace = inPlace_ && (kind_ != 6 || isRoot) && kind_ != 7;
    return {sendsInPlace ? MPI_IN_PLACE : send_.data(),
            inPlace_ && kind_ == 7 && isRoot ? MPI_IN_PLACE : receive_.data(),
            count,
            isPair ? count / 2 : count,
            isPair ? pairType() : MPI_INT,
            isPassed_ ? sumOfTheProgram() : MPI_SUM};
  }
  /// An operation that tacc does not know: MPI's own request among the others.
  static MPI_Op sumOfTheProgram() {
    static const MPI_Op op = [] {
      MPI_Op made = MPI_OP_NULL;
      MPI_Op_create(
          [](void* in, void* inOut, int* count, MPI_Datatype*) {
            for (int i = 0; i < *count; ++i) static_cast<int*>(inOut)[i] += static_cast<int*>(in)[i];
          },
          1, &made);
      return made;
    }();
    return op;
  }

  MPI_Comm comm_;
  int id_, kind_, root_;
  std::size_t count_;
  bool inPlace_, isPassed_ = false, isTacc_;
  int rank_ = 0, ranks_ = 1;
  std::vector<int> send_, receive_, expected_;
};

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
  std::vector<std::vector<std::unique_ptr<Collective>>> queues(comms.size());
  std::vector<std::size_t> order;
  for (int left = draws.upTo(8) + 1; left > 0; --left) {
    const auto at = static_cast<std::size_t>(draws.upTo(static_cast<int>(comms.size()) - 1));
    // Parts need the same draws on all of their ranks, which all ranks have.
    queues[at].push_back(std::make_unique<Collective>(comms[at], draws, (*id)++, isTacc));
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

}  // namespace

void runNonblocking(unsigned seed, int rounds, bool isTacc) {
  Draws draws(seed);
  std::mt19937 ownDraws(seed + 100 * static_cast<unsigned>(rankIn(MPI_COMM_WORLD)));
  std::vector<MPI_Comm> comms = makeComms();
  int id = 0;
  for (int round = 0; round < rounds; ++round) runRound(comms, draws, ownDraws, &id, isTacc);

  // Communicators that are freed while something is under way on them. Not of what MPI serves: Open MPI 4.1 crashes.
  std::vector<std::unique_ptr<Collective>> last;
  std::vector<MPI_Request> requests;
  for (MPI_Comm comm : comms) {
    last.push_back(std::make_unique<Collective>(comm, draws, id++, isTacc));
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

void runPersistent([[maybe_unused]] unsigned seed, [[maybe_unused]] bool isTacc) {
#ifdef PERSISTENT
  Draws draws(seed);
  std::mt19937 ownDraws(seed + 100 * static_cast<unsigned>(rankIn(MPI_COMM_WORLD)));
  std::vector<MPI_Comm> comms = makeComms();
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Collective>> collectives;
    std::vector<MPI_Request> requests;
    for (int i = 0; i < 6; ++i) {
      MPI_Comm comm = comms[static_cast<std::size_t>(draws.upTo(2))];
      auto made = std::make_unique<Collective>(comm, draws, 10 * round + i, isTacc);
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
      if (draws.upTo(1) == 0)
        MPI_Startall(static_cast<int>(requests.size()), requests.data());
      else
        for (MPI_Request& request : requests) MPI_Start(&request);
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

}  // namespace tacc::test
