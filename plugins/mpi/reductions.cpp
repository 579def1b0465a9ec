// Collectives that reduce. MPI's rules: type, operation, count, and whether it is in place are the same on all ranks.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "at_once.hpp"
#include "elements.hpp"
#include "judged_arguments.hpp"
#include "plugin.hpp"
#include "ready_calls.hpp"
#include "types.hpp"

namespace tacc::mpi {
namespace {

using Reduce = taccResult_t (*)(const void*, void*, size_t, taccDataType_t, taccRedOp_t, taccComm_t, taccStream_t);

template <class Count>
using MpiReduce = int (*)(const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm);
template <class Count>
using MpiReduceToRoot = int (*)(const void*, void*, Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
template <class Count>
using MpiReduceUnequally = int (*)(const void*, void*, const Count*, MPI_Datatype, MPI_Op, MPI_Comm);

[[gnu::always_inline]] inline Judged judgeToRoot(MPI_Count count, const Reduction& how, const void* send,
                                                 const void* receive, int root, const Communicator& communicator) {
  if (root < 0 || root >= communicator.ranks) return {Passed::arguments};
  return judgeReduction(count, how, communicator.rank == root ? receive : send);
}

[[gnu::always_inline]] inline taccResult_t reduceToRoot(const void* send, void* receive, MPI_Count count,
                                                        taccDataType_t type, taccRedOp_t op, int root,
                                                        const Communicator& communicator) {
  const bool isRoot = communicator.rank == root;
  return taccReduce(isRoot && send == MPI_IN_PLACE ? receive : send, isRoot ? receive : nullptr,
                    static_cast<std::size_t>(count), type, op, root, communicator.tacc, nullptr);
}

/// Of those whose result every rank gets: allreduce, scan, exscan.
template <class Count>
[[gnu::noinline]] int lookAtReduceToEvery(Function function, const char* name, Reduce reduce, const void* send,
                                          void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                          MpiReduce<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return takeOver(
      function, name, comm, [=](const Communicator&) { return judgeReduction(count, how, receive); },
      [=](const Communicator& communicator) {
        return reduce(send == MPI_IN_PLACE ? receive : send, receive, static_cast<std::size_t>(count), how.type, how.op,
                      communicator.tacc, nullptr);
      },
      [=] { return pass(send, receive, count, type, op, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtReduceToRoot(Function function, const char* name, const void* send, void* receive,
                                         Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                                         MpiReduceToRoot<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) { return judgeToRoot(count, how, send, receive, root, communicator); },
      [=](const Communicator& communicator) {
        return reduceToRoot(send, receive, count, how.type, how.op, root, communicator);
      },
      [=] { return pass(send, receive, count, type, op, root, comm); });
}

/// One buffer for both is against MPI's rules, and what some MPIs take as in place.
bool isInPlace(const void* send, const void* receive) { return send == MPI_IN_PLACE || send == receive; }

/// MPI's result in place stands at the beginning of the buffer on every rank, tacc's where the rank's own block was.
/// `counts`: of each rank.
taccResult_t reduceScatter(const void* send, void* receive, const std::size_t* counts, taccDataType_t type,
                           taccRedOp_t op, const Communicator& communicator) {
  if (!isInPlace(send, receive))
    return taccReduceScatterV(send, receive, counts, nullptr, type, op, communicator.tacc, nullptr);
  const std::size_t bytes = counts[communicator.rank] * sizeOf(type);
  std::byte* const block = communicator.scratch->blockOf(bytes);
  const taccResult_t result = taccReduceScatterV(receive, block, counts, nullptr, type, op, communicator.tacc, nullptr);
  if (result == taccSuccess && bytes != 0) std::memcpy(receive, block, bytes);
  return result;
}

template <class Count>
[[gnu::always_inline]] inline Judged judgeUnequal(const Count* counts, const Reduction& how, const void* receive,
                                                  const Communicator& communicator) {
  MPI_Count all = 0;
  for (int r = 0; counts != nullptr && r < communicator.ranks; ++r)
    all = counts[r] < 0 || all < 0 ? -1 : all + counts[r];
  return judgeReduction(counts == nullptr ? -1 : all, how, receive);
}

/// `counts` as tacc has them, until the communicator's next call.
template <class Count>
const std::size_t* kept(const Count* counts, const Communicator& communicator) {
  std::vector<std::size_t>& each = communicator.scratch->counts;
  each.assign(counts, counts + communicator.ranks);
  return each.data();
}

taccResult_t reduceScatterEqually(const void* send, void* receive, std::size_t count, taccDataType_t type,
                                  taccRedOp_t op, const Communicator& communicator) {
  if (!isInPlace(send, receive)) return taccReduceScatter(send, receive, count, type, op, communicator.tacc, nullptr);
  const std::size_t bytes = count * sizeOf(type);
  std::byte* const block = communicator.scratch->blockOf(bytes);
  const taccResult_t result = taccReduceScatter(receive, block, count, type, op, communicator.tacc, nullptr);
  if (result == taccSuccess) std::memcpy(receive, block, bytes);
  return result;
}

template <class Count>
[[gnu::noinline]] int lookAtReduceUnequally(Function function, const char* name, const void* send, void* receive,
                                            const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            MpiReduceUnequally<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) { return judgeUnequal(counts, how, receive, communicator); },
      [=](const Communicator& communicator) {
        return reduceScatter(send, receive, kept(counts, communicator), how.type, how.op, communicator);
      },
      [=] { return pass(send, receive, counts, type, op, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtReduceEqually(Function function, const char* name, const void* send, void* receive,
                                          Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                          MpiReduce<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeReduction(static_cast<MPI_Count>(count) * communicator.ranks, how, receive);
      },
      [=](const Communicator& communicator) {
        return reduceScatterEqually(send, receive, static_cast<std::size_t>(count), how.type, how.op, communicator);
      },
      [=] { return pass(send, receive, count, type, op, comm); });
}

template <class Count>
[[gnu::noinline]] int serveReduceToEvery(Function function, const char* name, Reduce reduce, const void* send,
                                         void* receive, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                         MpiReduce<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return serve(
      function, name, comm, [&](const Communicator&) { return bytesOf(judgeReduction(count, how, receive)); },
      [&](const Communicator& communicator, std::size_t) {
        return reduce(send == MPI_IN_PLACE ? receive : send, receive, static_cast<std::size_t>(count), how.type, how.op,
                      communicator.tacc, nullptr);
      },
      [&] { return pass(send, receive, count, type, op, comm); },
      [&] { return lookAtReduceToEvery<Count>(function, name, reduce, send, receive, count, type, op, comm, pass); },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(count, type, op), how);
      });
}

template <class Count>
[[gnu::noinline]] int serveReduceToRoot(Function function, const char* name, const void* send, void* receive,
                                        Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                                        MpiReduceToRoot<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        return bytesOf(judgeToRoot(count, how, send, receive, root, communicator));
      },
      [&](const Communicator& communicator, std::size_t) {
        return reduceToRoot(send, receive, count, how.type, how.op, root, communicator);
      },
      [&] { return pass(send, receive, count, type, op, root, comm); },
      [&] { return lookAtReduceToRoot<Count>(function, name, send, receive, count, type, op, root, comm, pass); },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(count, type, op, root), how);
      });
}

template <class Count>
[[gnu::noinline]] int serveReduceEqually(Function function, const char* name, const void* send, void* receive,
                                         Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                         MpiReduce<Count> pass) {
  const Reduction how = reductionOf(type, op);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        return isInPlace(send, receive)
                   ? unclear
                   : bytesOf(judgeReduction(static_cast<MPI_Count>(count) * communicator.ranks, how, receive));
      },
      [&](const Communicator& communicator, std::size_t) {
        return taccReduceScatter(send, receive, static_cast<std::size_t>(count), how.type, how.op, communicator.tacc,
                                 nullptr);
      },
      [&] { return pass(send, receive, count, type, op, comm); },
      [&] { return lookAtReduceEqually<Count>(function, name, send, receive, count, type, op, comm, pass); },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(count, type, op), how);
      });
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

// With `int` counts, and with large ones where the MPI has them.
#define TACC_MPI_TO_EVERY(name, suffix, Count, taccReduction)                                                       \
  TACC_MPI_ENTRY taccMpi_##name##suffix(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op, \
                                        MPI_Comm comm) {                                                            \
    const Function function = Function::name##suffix;                                                               \
    if (const ReadyCall* const ready = findReady(function, comm, wordsOf(count, type, op));                         \
        ready && receive != MPI_IN_PLACE && ready->calls->take())                                                   \
      return runReady(function, "MPI_" #name #suffix, *ready, [=] {                                                 \
        return taccReduction(send == MPI_IN_PLACE ? receive : send, receive, static_cast<std::size_t>(count),       \
                             ready->type, ready->op, ready->communicator->tacc, nullptr);                           \
      });                                                                                                           \
    return serveReduceToEvery<Count>(function, "MPI_" #name #suffix, taccReduction, send, receive, count, type, op, \
                                     comm, PMPI_##name##suffix);                                                    \
  }

#define TACC_MPI_REDUCTIONS(suffix, Count)                                                                             \
  TACC_MPI_TO_EVERY(Allreduce, suffix, Count, taccAllReduce)                                                           \
  TACC_MPI_TO_EVERY(Scan, suffix, Count, taccScan)                                                                     \
  TACC_MPI_TO_EVERY(Exscan, suffix, Count, taccExscan)                                                                 \
  TACC_MPI_ENTRY taccMpi_Reduce##suffix(const void* send, void* receive, Count count, MPI_Datatype type, MPI_Op op,    \
                                        int root, MPI_Comm comm) {                                                     \
    const Function function = Function::Reduce##suffix;                                                                \
    if (const ReadyCall* const ready = findReady(function, comm, wordsOf(count, type, op, root));                      \
        ready && (ready->communicator->rank == root ? receive : send) != MPI_IN_PLACE && ready->calls->take())         \
      return runReady(function, "MPI_Reduce" #suffix, *ready, [=] {                                                    \
        return reduceToRoot(send, receive, count, ready->type, ready->op, root, *ready->communicator);                 \
      });                                                                                                              \
    return serveReduceToRoot<Count>(function, "MPI_Reduce" #suffix, send, receive, count, type, op, root, comm,        \
                                    PMPI_Reduce##suffix);                                                              \
  }                                                                                                                    \
  TACC_MPI_ENTRY taccMpi_Reduce_scatter_block##suffix(const void* send, void* receive, Count count, MPI_Datatype type, \
                                                      MPI_Op op, MPI_Comm comm) {                                      \
    const Function function = Function::Reduce_scatter_block##suffix;                                                  \
    if (const ReadyCall* const ready = findReady(function, comm, wordsOf(count, type, op));                            \
        ready && receive != MPI_IN_PLACE && !isInPlace(send, receive) && ready->calls->take())                         \
      return runReady(function, "MPI_Reduce_scatter_block" #suffix, *ready, [=] {                                      \
        return taccReduceScatter(send, receive, static_cast<std::size_t>(count), ready->type, ready->op,               \
                                 ready->communicator->tacc, nullptr);                                                  \
      });                                                                                                              \
    return serveReduceEqually<Count>(function, "MPI_Reduce_scatter_block" #suffix, send, receive, count, type, op,     \
                                     comm, PMPI_Reduce_scatter_block##suffix);                                         \
  }                                                                                                                    \
  TACC_MPI_ENTRY taccMpi_Reduce_scatter##suffix(const void* send, void* receive, const Count* counts,                  \
                                                MPI_Datatype type, MPI_Op op, MPI_Comm comm) {                         \
    const Reduction how = reductionOf(type, op);                                                                       \
    return serve(                                                                                                      \
        Function::Reduce_scatter##suffix, "MPI_Reduce_scatter" #suffix, comm,                                          \
        [&](const Communicator& communicator) {                                                                        \
          return isInPlace(send, receive) ? unclear : bytesOf(judgeUnequal(counts, how, receive, communicator));       \
        },                                                                                                             \
        [&](const Communicator& communicator, std::size_t) {                                                           \
          return taccReduceScatterV(send, receive, kept(counts, communicator), nullptr, how.type, how.op,              \
                                    communicator.tacc, nullptr);                                                       \
        },                                                                                                             \
        [&] { return PMPI_Reduce_scatter##suffix(send, receive, counts, type, op, comm); },                            \
        [&] {                                                                                                          \
          return lookAtReduceUnequally<Count>(Function::Reduce_scatter##suffix, "MPI_Reduce_scatter" #suffix, send,    \
                                              receive, counts, type, op, comm, PMPI_Reduce_scatter##suffix);           \
        });                                                                                                            \
  }

TACC_MPI_REDUCTIONS(, int)
#if MPI_VERSION >= 4
TACC_MPI_REDUCTIONS(_c, MPI_Count)
#endif
