// Collectives that return a request: MPI_Iallreduce and its like, and those that make persistent ones.
#include <optional>
#include <utility>

#include "plugin.hpp"
#include "prepared.hpp"
#include "requests.hpp"

// Persistent collectives are MPI's since version 4; Open MPI 4 has them as an extension.
#if MPI_VERSION >= 4
#define TACC_MPI_PERSISTENT(name) PMPI_##name
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define TACC_MPI_PERSISTENT(name) PMPIX_##name
#endif
#endif

namespace tacc::mpi {
namespace {

/// Why a collective with a request goes to MPI though the arguments would do. `isLocal`: the call must not wait for
/// others, and so cannot make the tacc communicator.
std::optional<Passed> reasonToPass(Plugin& self, Communicator& communicator, std::size_t bytes, bool isLocal) {
  if (!self.takesRequests) return Passed::mpiTransport;
  if (bytes < self.leastWithRequest) return Passed::small;
  if (communicator.tacc != nullptr) return std::nullopt;
  if (isLocal) return Passed::notJoined;
  self.communicators.join(communicator);
  return communicator.passed;
}

/// takeOver() of a collective that returns a request. `make(communicator)`: returns MPI's code.
template <class Make, class Pass>
int takeOverRequest(Function function, const char* name, Kind kind, const Arguments& arguments, MPI_Comm comm,
                    MPI_Request* request, bool isLocal, Make make, Pass pass) {
  Plugin& self = plugin();
  const auto passOn = [&](Passed why) {
    self.report.countPassed(function, why);
    return pass();
  };
  if (Inside::isTrue()) return passOn(Passed::nested);
  const Inside inside;
  if (!self.isActive) return passOn(Passed::off);
  Communicator* const communicator =
      comm == MPI_COMM_NULL || request == nullptr ? nullptr : self.communicators.find(comm);
  if (communicator == nullptr) return passOn(Passed::arguments);
  if (communicator->passed) return passOn(*communicator->passed);
  const Judged judged = judge(kind, arguments, *communicator);
  if (judged.passed != Passed::none) return passOn(judged.passed);
  if (const auto why = reasonToPass(self, *communicator, judged.bytes, isLocal)) return passOn(*why);
  try {
    const int code = make(*communicator);
    self.report.countTaken(function, judged.bytes);
    return code;
  } catch (const std::exception& error) {
    return failCall(name, *communicator, error.what());
  }
}

template <class Pass>
int begin(Function function, const char* name, Kind kind, const Arguments& arguments, MPI_Comm comm,
          MPI_Request* request, Pass pass) {
  const auto make = [&](Communicator& communicator) {
    Arguments own = arguments;
    const auto types = keepTypes(kind, own, communicator.rank);
    Prepared prepared = prepare(kind, own, communicator);
    prepared.deliver = [types, deliver = std::move(prepared.deliver)] { deliver(); };
    return plugin().requests.begin(name, communicator, std::move(prepared), request);
  };
  return takeOverRequest(function, name, kind, arguments, comm, request, true, make, pass);
}

template <class Pass>
int makePersistent(Function function, const char* name, Kind kind, const Arguments& arguments, MPI_Comm comm,
                   MPI_Request* request, Pass pass) {
  const auto make = [&](Communicator& communicator) {
    Arguments own = arguments;
    const auto types = keepTypes(kind, own, communicator.rank);
    return plugin().requests.makePersistent(
        name, communicator, [kind, own, types, &communicator] { return prepare(kind, own, communicator); }, request);
  };
  return takeOverRequest(function, name, kind, arguments, comm, request, false, make, pass);
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

// FORM(kind, i-name, name, (arguments as MPI declares them), (as they are handed on), (as Arguments)).
#define TACC_MPI_FORMS(FORM)                                                                                       \
  FORM(allreduce, Iallreduce, Allreduce,                                                                           \
       (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                  \
       (send, receive, count, type, op, comm), (send, 0, MPI_DATATYPE_NULL, receive, count, type, op, 0))          \
  FORM(bcast, Ibcast, Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),                \
       (buffer, count, type, root, comm), (nullptr, 0, MPI_DATATYPE_NULL, buffer, count, type, MPI_OP_NULL, root)) \
  FORM(reduce, Ireduce, Reduce,                                                                                    \
       (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),        \
       (send, receive, count, type, op, root, comm), (send, 0, MPI_DATATYPE_NULL, receive, count, type, op, root)) \
  FORM(reduceScatterBlock, Ireduce_scatter_block, Reduce_scatter_block,                                            \
       (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                  \
       (send, receive, count, type, op, comm), (send, 0, MPI_DATATYPE_NULL, receive, count, type, op, 0))          \
  FORM(allgather, Iallgather, Allgather,                                                                           \
       (const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,                   \
        MPI_Datatype receiveType, MPI_Comm comm),                                                                  \
       (send, sendCount, sendType, receive, receiveCount, receiveType, comm),                                      \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, 0))                            \
  FORM(alltoall, Ialltoall, Alltoall,                                                                              \
       (const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,                   \
        MPI_Datatype receiveType, MPI_Comm comm),                                                                  \
       (send, sendCount, sendType, receive, receiveCount, receiveType, comm),                                      \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, 0))                            \
  FORM(gather, Igather, Gather,                                                                                    \
       (const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,                   \
        MPI_Datatype receiveType, int root, MPI_Comm comm),                                                        \
       (send, sendCount, sendType, receive, receiveCount, receiveType, root, comm),                                \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, root))                         \
  FORM(scatter, Iscatter, Scatter,                                                                                 \
       (const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,                   \
        MPI_Datatype receiveType, int root, MPI_Comm comm),                                                        \
       (send, sendCount, sendType, receive, receiveCount, receiveType, root, comm),                                \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, root))                         \
  FORM(barrier, Ibarrier, Barrier, (MPI_Comm comm), (comm), ())

// Takes the parentheses off a list.
#define TACC_MPI_LIST(...) __VA_ARGS__

#define TACC_MPI_NONBLOCKING_FORM(kind, iName, name, declared, given, kept)                                \
  TACC_MPI_ENTRY taccMpi_##iName(TACC_MPI_LIST declared, MPI_Request* request) {                           \
    return begin(Function::iName, "MPI_" #iName, Kind::kind, Arguments{TACC_MPI_LIST kept}, comm, request, \
                 [&] { return PMPI_##iName(TACC_MPI_LIST given, request); });                              \
  }
TACC_MPI_FORMS(TACC_MPI_NONBLOCKING_FORM)

#ifdef TACC_MPI_PERSISTENT
#define TACC_MPI_PERSISTENT_FORM(kind, iName, name, declared, given, kept)                                        \
  TACC_MPI_ENTRY taccMpi_##name##_init(TACC_MPI_LIST declared, MPI_Info info, MPI_Request* request) {             \
    return makePersistent(Function::name##_init, "MPI_" #name "_init", Kind::kind, Arguments{TACC_MPI_LIST kept}, \
                          comm, request,                                                                          \
                          [&] { return TACC_MPI_PERSISTENT(name##_init)(TACC_MPI_LIST given, info, request); });  \
  }
TACC_MPI_FORMS(TACC_MPI_PERSISTENT_FORM)
#endif
