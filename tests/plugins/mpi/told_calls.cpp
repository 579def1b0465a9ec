// Calls of nothing, whose buffers need not be there, and calls that MPI refuses.
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "corners.hpp"
#include "told.hpp"

namespace tacc::test {
namespace {

/// The arguments of one call: what MPI is given, right or wrong.
struct Given {
  const void* send = nullptr;
  void* receive = nullptr;
  int sendCount = 0, receiveCount = 0;
  MPI_Datatype sendType = MPI_INT, receiveType = MPI_INT;
  MPI_Op op = MPI_SUM;
  int root = 0;
  const int *sendCounts = nullptr, *receiveCounts = nullptr, *places = nullptr;
  const MPI_Datatype *sendTypes = nullptr, *receiveTypes = nullptr;
  MPI_Comm comm = MPI_COMM_WORLD;
};

enum Traits : unsigned {
  hasRoot = 1,
  reduces = 2,
  countsOfAll = 4,   // all ranks look at counts for each rank
  countsAtRoot = 8,  // only the root does, or nobody
  hasNoBuffers = 16,
  oneBuffer = 32,
  typesOfAll = 64,
};

struct Call {
  const char* name;
  unsigned traits;
  int (*blocking)(const Given&);
  int (*nonblocking)(const Given&, MPI_Request*);
  int (*persistent)(const Given&, MPI_Request*);  // null where MPI has none
};

#if MPI_VERSION >= 4
#define TACC_TOLD_INIT(name, ...) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request)
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define TACC_TOLD_INIT(name, ...) MPIX_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request)
#endif
#ifdef TACC_TOLD_INIT
#define TACC_TOLD_PERSISTENT(name, ...) \
  [](const Given& g, MPI_Request* request) { return TACC_TOLD_INIT(name, __VA_ARGS__); }
#else
#define TACC_TOLD_PERSISTENT(name, ...) nullptr
#endif
#define TACC_TOLD_CALL(traits, iName, name, ...)                                                \
  Call {                                                                                        \
    "MPI_" #name, traits, [](const Given& g) { return MPI_##name(__VA_ARGS__); },               \
        [](const Given& g, MPI_Request* request) { return MPI_##iName(__VA_ARGS__, request); }, \
        TACC_TOLD_PERSISTENT(name, __VA_ARGS__)                                                 \
  }

const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      TACC_TOLD_CALL(reduces, Iallreduce, Allreduce, g.send, g.receive, g.receiveCount, g.receiveType, g.op, g.comm),
      TACC_TOLD_CALL(reduces | hasRoot, Ireduce, Reduce, g.send, g.receive, g.receiveCount, g.receiveType, g.op, g.root,
                     g.comm),
      TACC_TOLD_CALL(reduces, Iscan, Scan, g.send, g.receive, g.receiveCount, g.receiveType, g.op, g.comm),
      TACC_TOLD_CALL(reduces, Iexscan, Exscan, g.send, g.receive, g.receiveCount, g.receiveType, g.op, g.comm),
      TACC_TOLD_CALL(reduces, Ireduce_scatter_block, Reduce_scatter_block, g.send, g.receive, g.receiveCount,
                     g.receiveType, g.op, g.comm),
      TACC_TOLD_CALL(reduces | countsOfAll, Ireduce_scatter, Reduce_scatter, g.send, g.receive, g.receiveCounts,
                     g.receiveType, g.op, g.comm),
      TACC_TOLD_CALL(hasRoot | oneBuffer, Ibcast, Bcast, g.receive, g.receiveCount, g.receiveType, g.root, g.comm),
      TACC_TOLD_CALL(0, Iallgather, Allgather, g.send, g.sendCount, g.sendType, g.receive, g.receiveCount,
                     g.receiveType, g.comm),
      TACC_TOLD_CALL(countsAtRoot, Iallgatherv, Allgatherv, g.send, g.sendCount, g.sendType, g.receive, g.receiveCounts,
                     g.places, g.receiveType, g.comm),
      TACC_TOLD_CALL(0, Ialltoall, Alltoall, g.send, g.sendCount, g.sendType, g.receive, g.receiveCount, g.receiveType,
                     g.comm),
      TACC_TOLD_CALL(countsOfAll, Ialltoallv, Alltoallv, g.send, g.sendCounts, g.places, g.sendType, g.receive,
                     g.receiveCounts, g.places, g.receiveType, g.comm),
      TACC_TOLD_CALL(countsOfAll | typesOfAll, Ialltoallw, Alltoallw, g.send, g.sendCounts, g.places, g.sendTypes,
                     g.receive, g.receiveCounts, g.places, g.receiveTypes, g.comm),
      TACC_TOLD_CALL(hasRoot, Igather, Gather, g.send, g.sendCount, g.sendType, g.receive, g.receiveCount,
                     g.receiveType, g.root, g.comm),
      TACC_TOLD_CALL(hasRoot | countsAtRoot, Igatherv, Gatherv, g.send, g.sendCount, g.sendType, g.receive,
                     g.receiveCounts, g.places, g.receiveType, g.root, g.comm),
      TACC_TOLD_CALL(hasRoot, Iscatter, Scatter, g.send, g.sendCount, g.sendType, g.receive, g.receiveCount,
                     g.receiveType, g.root, g.comm),
      TACC_TOLD_CALL(hasRoot | countsAtRoot, Iscatterv, Scatterv, g.send, g.sendCounts, g.places, g.sendType, g.receive,
                     g.receiveCount, g.receiveType, g.root, g.comm),
      TACC_TOLD_CALL(hasNoBuffers, Ibarrier, Barrier, g.comm),
  };
  return all;
}

/// MPI calls it with the code that the call then returns.
void tellFailure(MPI_Comm* comm, int* code, ...) {
  tell("the error handler of", ranksIn(*comm), "ranks gets", classOf(*code));
}

/// Sets it on a communicator, and where MPI turns when it has none.
class ToldFailures {
 public:
  ToldFailures() {
    MPI_Comm_create_errhandler(tellFailure, &handler_);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &ofWorld_);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &ofSelf_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler_);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler_);
  }
  ~ToldFailures() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, ofWorld_);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, ofSelf_);
    for (MPI_Errhandler* one : {&handler_, &ofWorld_, &ofSelf_}) MPI_Errhandler_free(one);
  }
  ToldFailures(const ToldFailures&) = delete;
  ToldFailures& operator=(const ToldFailures&) = delete;
  MPI_Errhandler handler() const { return handler_; }

 private:
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL, ofWorld_ = MPI_ERRHANDLER_NULL, ofSelf_ = MPI_ERRHANDLER_NULL;
};

enum class Form { blocking, nonblocking, persistent };

/// What the call returns, and where it makes a request, what that returns in the end.
void tellCall(const Call& call, const Given& given, Form form, const std::string& what) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS, ofWait = MPI_SUCCESS;
  switch (form) {
    case Form::blocking:
      code = call.blocking(given);
      break;
    case Form::nonblocking:
      code = call.nonblocking(given, &request);
      if (code == MPI_SUCCESS) ofWait = MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case Form::persistent:
      code = call.persistent(given, &request);
      if (code != MPI_SUCCESS) break;
      MPI_Start(&request);
      ofWait = MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
      break;
  }
  tell(call.name, "in form", static_cast<int>(form), "of", what, "returns", classOf(code), classOf(ofWait));
}

Form drawForm(const Call& call, Draws& draws) {
  const auto form = static_cast<Form>(draws.upTo(2));
  return form == Form::persistent && call.persistent == nullptr ? Form::nonblocking : form;
}

}  // namespace

void tellEmptyCalls(Draws& draws) {
  const ToldFailures failures;
  std::vector<MPI_Comm> comms = communicatorsOfAll();
  const auto ranks = static_cast<std::size_t>(ranksIn(MPI_COMM_WORLD));
  const std::vector<int> none(ranks, 0);
  const std::vector<MPI_Datatype> types(ranks, MPI_INT);
  std::array<int, 2> buffers{1, 2};
  for (int round = 0; round < 200; ++round) {
    const Call& call = calls()[static_cast<std::size_t>(draws.upTo(static_cast<int>(calls().size()) - 1))];
    Given given;
    given.comm = comms[static_cast<std::size_t>(draws.upTo(1))];
    given.root = draws.upTo(static_cast<int>(ranks) - 1);
    given.sendCounts = given.receiveCounts = given.places = none.data();
    given.sendTypes = given.receiveTypes = types.data();
    // One null buffer for both, which the library takes, MPICH refuses in the first two and Open MPI in the last.
    const std::string_view name = call.name;
    const bool hasToBeThere = name == "MPI_Alltoallv" || name == "MPI_Alltoallw" || name == "MPI_Reduce";
    const bool isThere = draws.upTo(1) == 0 || hasToBeThere;
    given.send = isThere ? &buffers[0] : nullptr;
    given.receive = isThere ? &buffers[1] : nullptr;
    tellCall(call, given, drawForm(call, draws), isThere ? "nothing" : "nothing nowhere");
    if (round % 10 == 0) useTold(given.comm, "one of empty calls");
  }
  tell("left:", buffers[0], buffers[1]);
  freeAll(comms);
}

namespace {

/// Right arguments, for calls of one number from each rank to each.
struct Right {
  Right(MPI_Comm comm, Draws& draws)
      : ranks(ranksIn(comm)),
        from(static_cast<std::size_t>(ranks), rankIn(comm)),
        to(from.size(), -1),
        ones(from.size(), 1),
        places(from.size()),
        types(from.size(), MPI_INT) {
    for (std::size_t r = 0; r < places.size(); ++r) places[r] = static_cast<int>(r);
    given.send = from.data();
    given.receive = to.data();
    given.sendCount = given.receiveCount = 1;
    given.sendCounts = given.receiveCounts = ones.data();
    given.places = places.data();
    given.sendTypes = given.receiveTypes = types.data();
    given.root = draws.upTo(ranks - 1);
    given.comm = comm;
  }
  int ranks;
  std::vector<int> from, to, ones, places;
  std::vector<MPI_Datatype> types;
  Given given;
};

/// Makes one or two of them wrong, so that each rank sees it: one that did not would wait for the others. Returns what
/// is wrong.
std::string spoil(const Call& call, Form form, Right& right, Draws& draws) {
  Given& given = right.given;
  std::string what;
  const auto spoilOne = [&](int which) {
    switch (which) {
      case 0:
        if ((call.traits & (hasNoBuffers | countsOfAll | countsAtRoot)) != 0) return;
        given.sendCount = given.receiveCount = -1;
        what += "a count of -1, ";
        return;
      case 1:
        if ((call.traits & (hasNoBuffers | typesOfAll)) != 0) return;
        given.sendType = given.receiveType = MPI_DATATYPE_NULL;
        what += "no type, ";
        return;
      case 2:
        if ((call.traits & reduces) == 0) return;
        given.op = MPI_OP_NULL;
        what += "no operation, ";
        return;
      case 3:
        if ((call.traits & reduces) == 0) return;
        given.op = MPI_BAND;
        given.receiveType = MPI_FLOAT;
        what += "bits of floats, ";
        return;
      case 4:
        if ((call.traits & hasRoot) == 0) return;
        given.root = draws.upTo(1) == 0 ? right.ranks : -17;
        what += "a root that is not there, ";
        return;
      case 5:
        // the same, and in MPI_Allgather without a type
        if (form != Form::blocking || std::string_view(call.name) == "MPI_Allgather") return;
        given.comm = MPI_COMM_NULL;
        what += "no communicator, ";
        return;
      case 6:
        if ((call.traits & countsOfAll) == 0) return;
        right.ones[static_cast<std::size_t>(draws.upTo(right.ranks - 1))] = -1;
        what += "a count of -1 for one, ";
        return;
      default:
        if ((call.traits & countsOfAll) == 0 || form != Form::blocking) return;  // Open MPI 4.1 itself crashes else
        given.sendCounts = given.receiveCounts = nullptr;
        what += "no counts, ";
        return;
    }
  };
  while (what.empty()) spoilOne(draws.upTo(7));
  if (draws.upTo(2) == 0) spoilOne(draws.upTo(7));
  return what;
}

/// Of what tests and waits; `requests` are collectives'.
void askWrongly(std::array<MPI_Request, 2>& requests) {
  int index = -1, flag = -1, done = -1;
  std::array<int, 2> indices{};
  MPI_Request* const none = nullptr;
  const auto refuses = [](const char* what, int code) { tell(what, "returns", classOf(code)); };
  refuses("MPI_Waitany to nowhere", MPI_Waitany(2, requests.data(), nullptr, MPI_STATUS_IGNORE));
  refuses("MPI_Testany to nowhere", MPI_Testany(2, requests.data(), nullptr, &flag, MPI_STATUS_IGNORE));
  refuses("MPI_Testany without a flag", MPI_Testany(2, requests.data(), &index, nullptr, MPI_STATUS_IGNORE));
  refuses("MPI_Testall without a flag", MPI_Testall(2, requests.data(), nullptr, MPI_STATUSES_IGNORE));
  refuses("MPI_Test without a flag", MPI_Test(requests.data(), nullptr, MPI_STATUS_IGNORE));
  refuses("MPI_Waitsome without a number",
          MPI_Waitsome(2, requests.data(), nullptr, indices.data(), MPI_STATUSES_IGNORE));
  refuses("MPI_Testsome without a number",
          MPI_Testsome(2, requests.data(), nullptr, indices.data(), MPI_STATUSES_IGNORE));
  refuses("MPI_Waitsome to nowhere", MPI_Waitsome(2, requests.data(), &done, nullptr, MPI_STATUSES_IGNORE));
  refuses("MPI_Waitall of -1", MPI_Waitall(-1, requests.data(), MPI_STATUSES_IGNORE));
  refuses("MPI_Waitall of no array", MPI_Waitall(2, none, MPI_STATUSES_IGNORE));
  refuses("MPI_Wait of nothing", MPI_Wait(none, MPI_STATUS_IGNORE));
  refuses("MPI_Test of nothing", MPI_Test(none, &flag, MPI_STATUS_IGNORE));
  refuses("MPI_Start of nothing", MPI_Start(none));
  refuses("MPI_Startall of no array", MPI_Startall(2, none));
  refuses("MPI_Request_free of nothing", MPI_Request_free(none));
  refuses("MPI_Cancel of nothing", MPI_Cancel(none));
  refuses("MPI_Request_get_status without a flag", MPI_Request_get_status(requests[0], nullptr, MPI_STATUS_IGNORE));
  std::array<MPI_Request, 1> null{MPI_REQUEST_NULL};
  refuses("MPI_Start of a null request", MPI_Start(null.data()));
  refuses("MPI_Request_free of a null request", MPI_Request_free(null.data()));
  refuses("MPI_Cancel of a null request", MPI_Cancel(null.data()));
}

}  // namespace

void tellWrongCalls(Draws& draws) {
  const ToldFailures failures;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, failures.handler());
  useTold(comm, "one before wrong calls");
  for (int round = 0; round < 300; ++round) {
    const Call& call = calls()[static_cast<std::size_t>(draws.upTo(static_cast<int>(calls().size()) - 1))];
    Right right(comm, draws);
    Form form = drawForm(call, draws);
    if ((call.traits & hasNoBuffers) != 0) form = Form::blocking;  // others cannot be wrong
    const std::string what = spoil(call, form, right, draws);
    tellCall(call, right.given, form, what);
    if (round % 10 == 0) useTold(comm, "one of wrong calls");
  }
  std::vector<int> in(20000, 1), out(in.size()), other(in.size());
  std::array<MPI_Request, 2> requests{};
  const auto count = static_cast<int>(in.size());
  MPI_Iallreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, comm, requests.data());
  MPI_Iallreduce(in.data(), other.data(), count, MPI_INT, MPI_SUM, comm, &requests[1]);
  askWrongly(requests);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  tell("sums", out.back(), other.back());
  useTold(comm, "one after wrong calls");
  MPI_Comm_free(&comm);
}

}  // namespace tacc::test
