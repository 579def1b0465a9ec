// Collectives that return a request and have a count for each rank. The arrays that tell them are copied: MPI asks the
// program to keep them, and no program fails that does not.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "judged_arguments.hpp"
#include "nonblocking.hpp"
#include "unequal_judged.hpp"

namespace tacc::mpi {
namespace {

template <class Count, class Displacement>
Places placesOf(const UnequalElements<Count, Displacement>& elements, int ranks) {
  Places places;
  places.counts.assign(elements.counts, elements.counts + ranks);
  if (elements.displacements != nullptr)
    places.displacements.assign(elements.displacements, elements.displacements + ranks);
  return places;
}

/// What one of MPI's functions is given, as it stands there, until it is known what of it this rank uses.
template <class Count, class Displacement>
struct Raw {
  Kind kind;
  UnequalElements<Count, Displacement> send, receive;  // where there are no counts for each, only buffer and type
  Count sendCount = 0, receiveCount = 0;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;

  /// As judge() of others: nothing but what the kind needs is left of it.
  [[gnu::always_inline]] Judged judge(const Communicator& communicator) const {
    switch (kind) {
      case Kind::allgatherv:
        return judgeWithOwn(receive, send.address, sendCount, send.type, communicator);
      case Kind::alltoallv:
        return judgeAllToAllV(send, receive, communicator);
      case Kind::gatherv:
        return judgeAtRoot(receive, send.address, sendCount, send.type, root, communicator);
      case Kind::scatterv:
        return judgeAtRoot(send, receive.address, receiveCount, receive.type, root, communicator);
      default:
        return judgeReduceScatter(communicator);
    }
  }

  /// Of what judge() lets through.
  Arguments keep(const Communicator& communicator) const {
    const bool isRoot = communicator.rank == root;
    const bool sendsToEach =
        (kind == Kind::alltoallv && send.address != MPI_IN_PLACE) || (kind == Kind::scatterv && isRoot);
    const bool receivesOfEach = kind != Kind::scatterv && (kind != Kind::gatherv || isRoot);
    Arguments a{{send.address, sendCount, send.type, receive.address, receiveCount, receive.type, op, root}};
    if (sendsToEach) a.sendPlaces = placesOf(send, communicator.ranks);
    if (receivesOfEach) a.receivePlaces = placesOf(receive, communicator.ranks);
    return a;
  }

 private:
  /// The bytes are all that a rank gives.
  [[gnu::always_inline]] Judged judgeReduceScatter(const Communicator& communicator) const {
    MPI_Count all = 0;
    for (int r = 0; receive.counts != nullptr && r < communicator.ranks; ++r)
      all = receive.counts[r] < 0 || all < 0 ? -1 : all + receive.counts[r];
    return judgeReduction(receive.counts == nullptr ? -1 : all, reductionOf(receive.type, op), receive.address);
  }
};

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

// FORM(suffix, Count, Displacement, i-name, name, (arguments as MPI declares them), (as they are handed on), (as Raw)).
#define TACC_MPI_UNEQUAL_FORMS(FORM, suffix, Count, Displacement)                                                      \
  FORM(suffix, Count, Displacement, Iallgatherv, Allgatherv,                                                           \
       (const void* send, Count sendCount, MPI_Datatype sendType, void* receive, const Count* counts,                  \
        const Displacement* places, MPI_Datatype type, MPI_Comm comm),                                                 \
       (send, sendCount, sendType, receive, counts, places, type, comm),                                               \
       (Kind::allgatherv, {const_cast<void*>(send), nullptr, nullptr, sendType}, {receive, counts, places, type},      \
        sendCount))                                                                                                    \
  FORM(suffix, Count, Displacement, Igatherv, Gatherv,                                                                 \
       (const void* send, Count sendCount, MPI_Datatype sendType, void* receive, const Count* counts,                  \
        const Displacement* places, MPI_Datatype type, int root, MPI_Comm comm),                                       \
       (send, sendCount, sendType, receive, counts, places, type, root, comm),                                         \
       (Kind::gatherv, {const_cast<void*>(send), nullptr, nullptr, sendType}, {receive, counts, places, type},         \
        sendCount, 0, MPI_OP_NULL, root))                                                                              \
  FORM(suffix, Count, Displacement, Iscatterv, Scatterv,                                                               \
       (const void* send, const Count* counts, const Displacement* places, MPI_Datatype type, void* receive,           \
        Count receiveCount, MPI_Datatype receiveType, int root, MPI_Comm comm),                                        \
       (send, counts, places, type, receive, receiveCount, receiveType, root, comm),                                   \
       (Kind::scatterv, {const_cast<void*>(send), counts, places, type}, {receive, nullptr, nullptr, receiveType}, 0,  \
        receiveCount, MPI_OP_NULL, root))                                                                              \
  FORM(                                                                                                                \
      suffix, Count, Displacement, Ialltoallv, Alltoallv,                                                              \
      (const void* send, const Count* sendCounts, const Displacement* sendPlaces, MPI_Datatype sendType,               \
       void* receive, const Count* counts, const Displacement* places, MPI_Datatype type, MPI_Comm comm),              \
      (send, sendCounts, sendPlaces, sendType, receive, counts, places, type, comm),                                   \
      (Kind::alltoallv, {const_cast<void*>(send), sendCounts, sendPlaces, sendType}, {receive, counts, places, type})) \
  FORM(suffix, Count, Displacement, Ireduce_scatter, Reduce_scatter,                                                   \
       (const void* send, void* receive, const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),            \
       (send, receive, counts, type, op, comm),                                                                        \
       (Kind::reduceScatter, {const_cast<void*>(send), nullptr, nullptr, type}, {receive, counts, nullptr, type}, 0,   \
        0, op))

#define TACC_MPI_UNEQUAL_BEGINNING(suffix, Count, Displacement, iName, name, declared, given, kept)  \
  [[gnu::noinline]] static int lookAt##iName##suffix(TACC_MPI_LIST declared, MPI_Request* request) { \
    const Raw<Count, Displacement> raw{TACC_MPI_LIST kept};                                          \
    return begin(                                                                                    \
        Function::iName##suffix, "MPI_" #iName #suffix, raw.kind,                                    \
        [&](const Communicator& communicator) { return raw.judge(communicator); },                   \
        [&](const Communicator& communicator) { return raw.keep(communicator); }, comm, request,     \
        [&] { return PMPI_##iName##suffix(TACC_MPI_LIST given, request); });                         \
  }                                                                                                  \
  TACC_MPI_ENTRY taccMpi_##iName##suffix(TACC_MPI_LIST declared, MPI_Request* request) {             \
    const Raw<Count, Displacement> raw{TACC_MPI_LIST kept};                                          \
    return serveRequest(                                                                             \
        Function::iName##suffix, raw.kind, comm, request,                                            \
        [&](const Communicator& communicator) { return raw.judge(communicator); },                   \
        [&] { return PMPI_##iName##suffix(TACC_MPI_LIST given, request); },                          \
        [&] { return lookAt##iName##suffix(TACC_MPI_LIST given, request); });                        \
  }
TACC_MPI_UNEQUAL_FORMS(TACC_MPI_UNEQUAL_BEGINNING, , int, int)
#if MPI_VERSION >= 4
TACC_MPI_UNEQUAL_FORMS(TACC_MPI_UNEQUAL_BEGINNING, _c, MPI_Count, MPI_Aint)
#endif

#ifdef TACC_MPI_PERSISTENT
#define TACC_MPI_UNEQUAL_PERSISTENT_FORM(suffix, Count, Displacement, iName, name, declared, given, kept)     \
  TACC_MPI_ENTRY taccMpi_##name##_init##suffix(TACC_MPI_LIST declared, MPI_Info info, MPI_Request* request) { \
    const Raw<Count, Displacement> raw{TACC_MPI_LIST kept};                                                   \
    return makePersistent(                                                                                    \
        Function::name##_init##suffix, "MPI_" #name "_init" #suffix, raw.kind,                                \
        [&](const Communicator& communicator) { return raw.judge(communicator); },                            \
        [&](const Communicator& communicator) { return raw.keep(communicator); }, comm, request,              \
        [&] { return TACC_MPI_PERSISTENT(name##_init##suffix)(TACC_MPI_LIST given, info, request); });        \
  }
TACC_MPI_UNEQUAL_FORMS(TACC_MPI_UNEQUAL_PERSISTENT_FORM, , int, int)
#if MPI_VERSION >= 4
TACC_MPI_UNEQUAL_FORMS(TACC_MPI_UNEQUAL_PERSISTENT_FORM, _c, MPI_Count, MPI_Aint)
#endif
#endif
