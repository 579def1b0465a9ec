// Collectives that return a request: MPI_Iallreduce and its like, and those that make persistent ones.
#include "nonblocking.hpp"

#include <optional>

#include "judged_given.hpp"

namespace tacc::mpi {

std::optional<Passed> reasonToPass(Kind kind, std::size_t bytes, Communicator& communicator, bool isLocal) {
  const Plugin& self = plugin();
  const std::size_t least = leastBytes(kind);
  if (!self.takesRequests) return self.whyNoRequests;
  if (least == SIZE_MAX) return Passed::small;
  // Of what a rank does not know of the others it must not ask them, unless it may wait.
  if (least > 0 && UsualBytes::isAbout(kind)) {
    UsualBytes& usual = communicator.usual;
    if (isLocal) usual.note(kind, bytes);
    if (isLocal && !usual.isKnown(kind)) return Passed::unknown;
    bytes = isLocal ? usual.known(kind) : mostOf(bytes, communicator);
  }
  if (bytes < least) return Passed::small;
  if (communicator.tacc != nullptr) return std::nullopt;
  if (isLocal) return Passed::notJoined;
  plugin().communicators.join(communicator);
  return communicator.passed;
}

}  // namespace tacc::mpi

using namespace tacc::mpi;

// FORM(suffix, kind, i-name, name, (arguments as MPI declares them), (as they are handed on), (as Given)).
#define TACC_MPI_REDUCED_FORM(FORM, suffix, Count, kind, iName, name)                               \
  FORM(suffix, kind, iName, name,                                                                   \
       (const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
       (send, receive, count, type, op, comm), (send, 0, MPI_DATATYPE_NULL, receive, count, type, op, 0))
#define TACC_MPI_MOVED_FORM(FORM, suffix, Count, kind, iName, name)                                  \
  FORM(suffix, kind, iName, name,                                                                    \
       (const void* send, Count sendCount, MPI_Datatype sendType, void* receive, Count receiveCount, \
        MPI_Datatype receiveType, MPI_Comm comm),                                                    \
       (send, sendCount, sendType, receive, receiveCount, receiveType, comm),                        \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, 0))
#define TACC_MPI_ROOTED_FORM(FORM, suffix, Count, kind, iName, name)                                 \
  FORM(suffix, kind, iName, name,                                                                    \
       (const void* send, Count sendCount, MPI_Datatype sendType, void* receive, Count receiveCount, \
        MPI_Datatype receiveType, int root, MPI_Comm comm),                                          \
       (send, sendCount, sendType, receive, receiveCount, receiveType, root, comm),                  \
       (send, sendCount, sendType, receive, receiveCount, receiveType, MPI_OP_NULL, root))
#define TACC_MPI_FORMS(FORM, suffix, Count)                                                                        \
  TACC_MPI_REDUCED_FORM(FORM, suffix, Count, allreduce, Iallreduce, Allreduce)                                     \
  TACC_MPI_REDUCED_FORM(FORM, suffix, Count, scan, Iscan, Scan)                                                    \
  TACC_MPI_REDUCED_FORM(FORM, suffix, Count, exscan, Iexscan, Exscan)                                              \
  TACC_MPI_REDUCED_FORM(FORM, suffix, Count, reduceScatterBlock, Ireduce_scatter_block, Reduce_scatter_block)      \
  TACC_MPI_MOVED_FORM(FORM, suffix, Count, allgather, Iallgather, Allgather)                                       \
  TACC_MPI_MOVED_FORM(FORM, suffix, Count, alltoall, Ialltoall, Alltoall)                                          \
  TACC_MPI_ROOTED_FORM(FORM, suffix, Count, gather, Igather, Gather)                                               \
  TACC_MPI_ROOTED_FORM(FORM, suffix, Count, scatter, Iscatter, Scatter)                                            \
  FORM(suffix, bcast, Ibcast, Bcast, (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm),      \
       (buffer, count, type, root, comm), (nullptr, 0, MPI_DATATYPE_NULL, buffer, count, type, MPI_OP_NULL, root)) \
  FORM(suffix, reduce, Ireduce, Reduce,                                                                            \
       (const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),      \
       (send, receive, count, type, op, root, comm), (send, 0, MPI_DATATYPE_NULL, receive, count, type, op, root))
#define TACC_MPI_BARRIER_FORM(FORM) FORM(, barrier, Ibarrier, Barrier, (MPI_Comm comm), (comm), ())

#define TACC_MPI_BEGINNING(suffix, kind, iName, name, declared, given, kept)                                          \
  [[gnu::noinline]] static int lookAt##iName##suffix(TACC_MPI_LIST declared, MPI_Request* request) {                  \
    const Arguments arguments{{TACC_MPI_LIST kept}};                                                                  \
    return begin(                                                                                                     \
        Function::iName##suffix, "MPI_" #iName #suffix, Kind::kind,                                                   \
        [&](const Communicator& communicator) { return judge(Kind::kind, arguments, communicator); },                 \
        [&](const Communicator&) { return arguments; }, comm, request,                                                \
        [&] { return PMPI_##iName##suffix(TACC_MPI_LIST given, request); });                                          \
  }                                                                                                                   \
  TACC_MPI_ENTRY taccMpi_##iName##suffix(TACC_MPI_LIST declared, MPI_Request* request) {                              \
    return serveRequest(                                                                                              \
        Function::iName##suffix, Kind::kind, comm, request,                                                           \
        [&](const Communicator& communicator) { return judge(Kind::kind, Given{TACC_MPI_LIST kept}, communicator); }, \
        [&] { return PMPI_##iName##suffix(TACC_MPI_LIST given, request); },                                           \
        [&] { return lookAt##iName##suffix(TACC_MPI_LIST given, request); });                                         \
  }
TACC_MPI_FORMS(TACC_MPI_BEGINNING, , int)
TACC_MPI_BARRIER_FORM(TACC_MPI_BEGINNING)
#if MPI_VERSION >= 4
TACC_MPI_FORMS(TACC_MPI_BEGINNING, _c, MPI_Count)
#endif

#ifdef TACC_MPI_PERSISTENT
#define TACC_MPI_PERSISTENT_FORM(suffix, kind, iName, name, declared, given, kept)                            \
  TACC_MPI_ENTRY taccMpi_##name##_init##suffix(TACC_MPI_LIST declared, MPI_Info info, MPI_Request* request) { \
    const Arguments arguments{{TACC_MPI_LIST kept}};                                                          \
    return makePersistent(                                                                                    \
        Function::name##_init##suffix, "MPI_" #name "_init" #suffix, Kind::kind,                              \
        [&](const Communicator& communicator) { return judge(Kind::kind, arguments, communicator); },         \
        [&](const Communicator&) { return arguments; }, comm, request,                                        \
        [&] { return TACC_MPI_PERSISTENT(name##_init##suffix)(TACC_MPI_LIST given, info, request); });        \
  }
TACC_MPI_FORMS(TACC_MPI_PERSISTENT_FORM, , int)
TACC_MPI_BARRIER_FORM(TACC_MPI_PERSISTENT_FORM)
#if MPI_VERSION >= 4
TACC_MPI_FORMS(TACC_MPI_PERSISTENT_FORM, _c, MPI_Count)
#endif
#endif
