// A drawn MPI program that meets a fault on its way; it knows nothing of tacc. faults.py runs it with libtacc_mpi
// preloaded and without:
//   program WAY SEED
// WAY: calls (what is wrong is around it), kill, stop (a rank is killed or stopped at a drawn moment of a drawn call),
// left (the same as kill, where nobody but the library ends the others), shells, errors, abort, unfinalized, open.
// What each call delivers follows from its number; a wrong number ends the job with FAILED.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "draws.hpp"

namespace tacc::test {
namespace {

constexpr unsigned stopSeconds = 2;

/// Element `i` of what rank `from` has for rank `to` in call `number`.
int value(int number, int from, int to, int i) { return (number * 31 + from * 17 + to * 5 + i * 3) % 1009; }

std::vector<int> valuesOf(int number, int from, int to, int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = value(number, from, to, i);
  return values;
}

/// Blocks of what rank `self` has for each of `ranks`.
std::vector<int> blocksOf(int number, int self, int ranks, int count) {
  std::vector<int> all;
  for (int to = 0; to < ranks; ++to) {
    const std::vector<int> block = valuesOf(number, self, to, count);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

/// Blocks of what each of `ranks` has for rank `to`.
std::vector<int> blocksFor(int number, int to, int ranks, int count) {
  std::vector<int> all;
  for (int from = 0; from < ranks; ++from) {
    const std::vector<int> block = valuesOf(number, from, to, count);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

/// What ranks 0 to `ranks` - 1 have for rank 0, summed up.
std::vector<int> sumOf(int number, int ranks, int count) {
  std::vector<int> sum(static_cast<std::size_t>(count));
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += value(number, from, 0, i);
  return sum;
}

/// The drawn calls of one communicator after another, numbered from 0.
class Calls {
 public:
  explicit Calls(unsigned seed) : draws_(seed) {}

  /// Makes the next one over `comm` and checks what has come. Every rank of the world makes the same draws.
  void make(MPI_Comm comm) {
    MPI_Comm_rank(comm, &self_);
    MPI_Comm_size(comm, &ranks_);
    const int count = draws_.count(), root = draws_.upTo(ranks_ - 1), kind = draws_.upTo(9);
    const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks_);
    std::vector<int> in = valuesOf(number_, self_, 0, count), out(in.size(), -1), blocks(all, -1);
    switch (kind) {
      case 0:
        MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
        return expect("MPI_Allreduce", out, sumOf(number_, ranks_, count));
      case 1:
        MPI_Allreduce(MPI_IN_PLACE, in.data(), count, MPI_INT, MPI_SUM, comm);
        return expect("MPI_Allreduce in place", in, sumOf(number_, ranks_, count));
      case 2:
        MPI_Reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, root, comm);
        if (self_ != root) out = sumOf(number_, ranks_, count);
        return expect("MPI_Reduce", out, sumOf(number_, ranks_, count));
      case 3:
        MPI_Bcast(in.data(), count, MPI_INT, root, comm);
        return expect("MPI_Bcast", in, valuesOf(number_, root, 0, count));
      case 4:
        MPI_Allgather(in.data(), count, MPI_INT, blocks.data(), count, MPI_INT, comm);
        return expect("MPI_Allgather", blocks, blocksFor(number_, 0, ranks_, count));
      case 5: {
        const std::vector<int> sent = blocksOf(number_, self_, ranks_, count);
        MPI_Alltoall(sent.data(), count, MPI_INT, blocks.data(), count, MPI_INT, comm);
        return expect("MPI_Alltoall", blocks, blocksFor(number_, self_, ranks_, count));
      }
      case 6: {
        const std::vector<int> sent = blocksOf(number_, root, ranks_, count);
        MPI_Scatter(sent.data(), count, MPI_INT, out.data(), count, MPI_INT, root, comm);
        return expect("MPI_Scatter", out, valuesOf(number_, root, self_, count));
      }
      case 7: {
        const std::vector<int> counts(static_cast<std::size_t>(ranks_), count);
        std::vector<int> places(counts.size());
        std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
        MPI_Allgatherv(in.data(), count, MPI_INT, blocks.data(), counts.data(), places.data(), MPI_INT, comm);
        return expect("MPI_Allgatherv", blocks, blocksFor(number_, 0, ranks_, count));
      }
      case 8:
        MPI_Scan(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
        return expect("MPI_Scan", out, sumOf(number_, self_ + 1, count));
      default: {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return expect("MPI_Iallreduce", out, sumOf(number_, ranks_, count));
      }
    }
  }

  /// So many over the world, a duplicate and a part of it.
  void makeSome(int calls) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm copy = MPI_COMM_NULL, turned = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    const std::array<MPI_Comm, 3> comms{MPI_COMM_WORLD, copy, turned};
    for (int call = 0; call < calls; ++call) make(comms[static_cast<std::size_t>(draws_.upTo(2))]);
    MPI_Comm_free(&turned);
    MPI_Comm_free(&copy);
  }

  Draws& draws() { return draws_; }

 private:
  void expect(const char* what, const std::vector<int>& found, const std::vector<int>& right) {
    if (found != right) complain(std::string(what) + ", call " + std::to_string(number_) + ", gives other numbers");
    ++number_;
  }

  Draws draws_;
  int number_ = 0, self_ = 0, ranks_ = 0;
};

/// A process that sends this one a signal when it is told, `delay` microseconds later: in the middle of what follows.
class Assailant {
 public:
  /// Before MPI_Init, as not every MPI bears a fork after it.
  explicit Assailant(int signal) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    const pid_t victim = ::getpid(), child = ::fork();
    if (child == 0) {
      ::close(ends[1]);
      useconds_t delay = 0;
      if (::read(ends[0], &delay, sizeof delay) != sizeof delay) ::_exit(0);  // the victim has ended
      ::usleep(delay);
      ::kill(victim, signal);
      if (signal == SIGSTOP) {
        ::sleep(stopSeconds);
        ::kill(victim, SIGCONT);
      }
      ::_exit(0);
    }
    ::close(ends[0]);
    toChild_ = ends[1];
  }
  void strike(useconds_t delay) {
    if (::write(toChild_, &delay, sizeof delay) != sizeof delay) std::abort();
  }

 private:
  int toChild_ = -1;
};

void endAll(void* /*in*/, void* /*inOut*/, int* /*count*/, MPI_Datatype* /*type*/) { MPI_Abort(MPI_COMM_WORLD, 7); }

void expectStatus(int status, const char* what) {
  if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) complain(std::string(what) + " fails");
}

/// Programs and copies of this process that come and go between the calls.
void startShells(Calls& calls) {
  for (int round = 0; round < 4; ++round) {
    calls.makeSome(5);
    expectStatus(std::system("true"), "a shell");
    const bool isExec = calls.draws().upTo(1) == 0;
    const pid_t child = ::fork();
    if (child == 0) {
      if (isExec) ::execl("/bin/true", "true", static_cast<char*>(nullptr));
      std::exit(0);  // with all that the libraries do at the end
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    expectStatus(status, "a copy of the process");
  }
}

/// Arguments that are wrong come back as errors, and what follows is right.
void makeWrongCalls(Calls& calls) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int one = 1, other = 0;
  for (int round = 0; round < 6; ++round) {
    calls.makeSome(4);
    int code = MPI_SUCCESS;
    switch (calls.draws().upTo(3)) {
      case 0:
        code = MPI_Allreduce(&one, &other, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
        break;
      case 1:
        code = MPI_Allreduce(&one, &other, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
        break;
      case 2:
        code = MPI_Bcast(&one, 1, MPI_INT, 1000, MPI_COMM_WORLD);
        break;
      default:
        code = MPI_Bcast(&one, 1, MPI_INT, -5, MPI_COMM_WORLD);
    }
    if (code == MPI_SUCCESS) complain("a wrong argument is no error");
  }
}

/// Up to the end of the program. `assailant`: null where nobody comes to harm.
void run(std::string_view way, unsigned seed, Assailant* assailant) {
  Calls calls(seed);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  calls.makeSome(10 + calls.draws().upTo(40));
  if (assailant != nullptr) {
    const int victim = ranks - 1, delay = calls.draws().upTo(3000);
    if (rank == victim) assailant->strike(static_cast<useconds_t>(delay));
    // Longer than it takes until the signal comes; whoever is left meanwhile goes on to the next call.
    const double begin = MPI_Wtime();
    for (int goesOn = 1; goesOn != 0; MPI_Bcast(&goesOn, 1, MPI_INT, 0, MPI_COMM_WORLD)) {
      for (int call = 0; call < 20; ++call) calls.make(MPI_COMM_WORLD);
      goesOn = MPI_Wtime() - begin < (way == "stop" ? 0.1 : 60) ? 1 : 0;
    }
  }
  if (way == "shells") startShells(calls);
  if (way == "errors") makeWrongCalls(calls);
  if (way == "abort") {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(endAll, 1, &op);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
  }
  calls.makeSome(10);
}

/// Requests of which nobody asks again.
void leaveOpen() {
  static std::vector<int> in(1 << 16, 1), out(1 << 16), never(1);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(in.data(), out.data(), 1 << 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Irecv(never.data(), 1, MPI_INT, 0, 99, MPI_COMM_SELF, &request);
}

}  // namespace
}  // namespace tacc::test

int main(int argc, char** argv) {
  using namespace tacc::test;
  const std::string_view way = argc > 1 ? argv[1] : "";
  const auto seed = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 1U;
  Assailant* assailant = nullptr;
  if (way == "kill" || way == "left") assailant = new Assailant(SIGKILL);
  if (way == "stop") assailant = new Assailant(SIGSTOP);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  run(way, seed, assailant);
  if (way == "unfinalized") return 0;
  if (way == "open") leaveOpen();
  MPI_Finalize();
  if (rank == 0) std::puts("all right");
  return 0;
}
