// Collectives that move data as it is. MPI's rules: what one rank sends and another one receives has the same numbers
// in the same order, so as many bytes; the types may differ, also in gaps. So all types are taken over: those with
// gaps, or with an order of their own, through copies that MPI packs.
#include "at_once.hpp"
#include "elements.hpp"
#include "judged_arguments.hpp"
#include "plugin.hpp"
#include "ready_calls.hpp"
#include "types.hpp"

namespace tacc::mpi {
namespace {

using Use = Block::Use;

/// `judged`: of the rank's part.
Judged judgeRooted(int root, const Communicator& communicator, const Judged& judged) {
  return root < 0 || root >= communicator.ranks ? Judged{Passed::arguments} : judged;
}

taccResult_t delivered(taccResult_t result, const Block& block) {
  if (result == taccSuccess) block.deliver();
  return result;
}

taccResult_t broadcast(const Elements& elements, int root, const Communicator& communicator) {
  const Block block(elements, communicator.rank == root ? Use::read : Use::write);
  const taccResult_t result = taccBcast(block.data(), elements.bytes(), taccInt8, root, communicator.tacc, nullptr);
  return communicator.rank == root ? result : delivered(result, block);
}

taccResult_t allGather(const void* send, MPI_Count sendCount, MPI_Datatype sendType, const Elements& receive,
                       const Communicator& communicator) {
  const std::size_t bytes = receive.bytes();
  const Block to(receive.ofAll(communicator.ranks), Use::write);
  if (send == MPI_IN_PLACE) {
    std::byte* const own = to.data() + bytes * static_cast<std::size_t>(communicator.rank);
    copyInto(receive.block(communicator.rank), own);
    return delivered(taccAllGather(own, to.data(), bytes, taccInt8, communicator.tacc, nullptr), to);
  }
  Block from(elementsAt(send, sendCount, sendType), Use::read);
  from.keepApart(to, bytes * static_cast<std::size_t>(communicator.rank));
  return delivered(taccAllGather(from.data(), to.data(), bytes, taccInt8, communicator.tacc, nullptr), to);
}

taccResult_t allToAll(const void* send, MPI_Count sendCount, MPI_Datatype sendType, const Elements& receive,
                      const Communicator& communicator) {
  const bool inPlace = send == MPI_IN_PLACE;
  const Block to(receive.ofAll(communicator.ranks), inPlace ? Use::both : Use::write);
  if (inPlace)
    return delivered(taccAllToAll(to.data(), to.data(), receive.bytes(), taccInt8, communicator.tacc, nullptr), to);
  Block from(elementsAt(send, sendCount, sendType).ofAll(communicator.ranks), Use::read);
  from.keepApart(to, 0);
  return delivered(taccAllToAll(from.data(), to.data(), receive.bytes(), taccInt8, communicator.tacc, nullptr), to);
}

/// On the root.
taccResult_t gatherHere(const void* send, MPI_Count sendCount, MPI_Datatype sendType, const Elements& receive,
                        const Communicator& communicator) {
  const std::size_t bytes = receive.bytes();
  const int root = communicator.rank;
  const Block to(receive.ofAll(communicator.ranks), Use::write);
  if (send == MPI_IN_PLACE) {
    std::byte* const own = to.data() + bytes * static_cast<std::size_t>(root);
    copyInto(receive.block(root), own);
    return delivered(taccGather(own, to.data(), bytes, taccInt8, root, communicator.tacc, nullptr), to);
  }
  Block from(elementsAt(send, sendCount, sendType), Use::read);
  from.keepApart(to, bytes * static_cast<std::size_t>(root));
  return delivered(taccGather(from.data(), to.data(), bytes, taccInt8, root, communicator.tacc, nullptr), to);
}

/// On the root.
taccResult_t scatterHere(const Elements& send, void* receive, MPI_Count receiveCount, MPI_Datatype receiveType,
                         const Communicator& communicator) {
  const std::size_t bytes = send.bytes();
  const int root = communicator.rank;
  const Block from(send.ofAll(communicator.ranks), Use::read);
  if (receive == MPI_IN_PLACE)
    return taccScatter(from.data(), from.data() + bytes * static_cast<std::size_t>(root), bytes, taccInt8, root,
                       communicator.tacc, nullptr);
  const Block to(elementsAt(receive, receiveCount, receiveType), Use::write);
  return delivered(taccScatter(from.data(), to.data(), bytes, taccInt8, root, communicator.tacc, nullptr), to);
}

template <class Count>
using TwoBuffers = int (*)(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, MPI_Comm);
template <class Count>
using TwoBuffersAndRoot = int (*)(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, int, MPI_Comm);

inline Judged judgeGather(const void* send, MPI_Count sendCount, MPI_Datatype sendType, const void* receive,
                          MPI_Count receiveCount, MPI_Datatype receiveType, int root,
                          const Communicator& communicator) {
  return judgeRooted(root, communicator,
                     communicator.rank == root
                         ? judgeMovement(receive, receiveCount, receiveType, send, sendCount, sendType)
                         : judgeMovement(send, sendCount, sendType));
}

inline Judged judgeScatter(const void* send, MPI_Count sendCount, MPI_Datatype sendType, const void* receive,
                           MPI_Count receiveCount, MPI_Datatype receiveType, int root,
                           const Communicator& communicator) {
  return judgeGather(receive, receiveCount, receiveType, send, sendCount, sendType, root, communicator);
}

template <class Count>
[[gnu::noinline]] int lookAtBcast(Function function, const char* name, void* buffer, Count count, MPI_Datatype type,
                                  int root, MPI_Comm comm, int (*pass)(void*, Count, MPI_Datatype, int, MPI_Comm)) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeRooted(root, communicator, judgeMovement(buffer, count, type));
      },
      [=](const Communicator& communicator) { return broadcast(elementsAt(buffer, count, type), root, communicator); },
      [=] { return pass(buffer, count, type, root, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtAllgather(Function function, const char* name, const void* send, Count sendCount,
                                      MPI_Datatype sendType, void* receive, Count receiveCount,
                                      MPI_Datatype receiveType, MPI_Comm comm, TwoBuffers<Count> pass) {
  return takeOver(
      function, name, comm,
      [=](const Communicator&) { return judgeMovement(receive, receiveCount, receiveType, send, sendCount, sendType); },
      [=](const Communicator& communicator) {
        return allGather(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
      },
      [=] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtAlltoall(Function function, const char* name, const void* send, Count sendCount,
                                     MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                     MPI_Comm comm, TwoBuffers<Count> pass) {
  return takeOver(
      function, name, comm,
      [=](const Communicator&) { return judgeMovement(receive, receiveCount, receiveType, send, sendCount, sendType); },
      [=](const Communicator& communicator) {
        return allToAll(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
      },
      [=] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtGather(Function function, const char* name, const void* send, Count sendCount,
                                   MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                   int root, MPI_Comm comm, TwoBuffersAndRoot<Count> pass) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeGather(send, sendCount, sendType, receive, receiveCount, receiveType, root, communicator);
      },
      [=](const Communicator& communicator) {
        if (communicator.rank == root)
          return gatherHere(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
        const Elements elements = elementsAt(send, sendCount, sendType);
        const Block from(elements, Use::read);
        return taccGather(from.data(), nullptr, elements.bytes(), taccInt8, root, communicator.tacc, nullptr);
      },
      [=] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); });
}

template <class Count>
[[gnu::noinline]] int lookAtScatter(Function function, const char* name, const void* send, Count sendCount,
                                    MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                    int root, MPI_Comm comm, TwoBuffersAndRoot<Count> pass) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeScatter(send, sendCount, sendType, receive, receiveCount, receiveType, root, communicator);
      },
      [=](const Communicator& communicator) {
        if (communicator.rank == root)
          return scatterHere(elementsAt(send, sendCount, sendType), receive, receiveCount, receiveType, communicator);
        const Elements elements = elementsAt(receive, receiveCount, receiveType);
        const Block to(elements, Use::write);
        return delivered(taccScatter(nullptr, to.data(), elements.bytes(), taccInt8, root, communicator.tacc, nullptr),
                         to);
      },
      [=] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); });
}

[[gnu::noinline]] int lookAtBarrier(MPI_Comm comm) {
  return takeOver(
      Function::Barrier, "MPI_Barrier", comm, [](const Communicator&) { return Judged{}; },
      [](const Communicator& communicator) { return taccBarrier(communicator.tacc, nullptr); },
      [=] { return PMPI_Barrier(comm); });
}

[[gnu::always_inline]] inline bool isRank(int root, const Communicator& communicator) {
  return root >= 0 && root < communicator.ranks;
}

/// Whether a block of `sent` bytes at each of `sentTimes` places, and the result, lie where a short call takes them.
[[gnu::always_inline]] inline bool areReady(const void* send, int sentTimes, const void* receive, int receivedTimes,
                                            std::size_t bytes) noexcept {
  return send != MPI_IN_PLACE && receive != MPI_IN_PLACE &&
         areApart(send, bytes * static_cast<std::size_t>(sentTimes), receive,
                  bytes * static_cast<std::size_t>(receivedTimes));
}

template <class Count>
[[gnu::noinline]] int serveBcast(Function function, const char* name, void* buffer, Count count, MPI_Datatype type,
                                 int root, MPI_Comm comm, int (*pass)(void*, Count, MPI_Datatype, int, MPI_Comm)) {
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        return isRank(root, communicator) ? blockBytes(buffer, count, type) : unclear;
      },
      [&](const Communicator& communicator, std::size_t bytes) {
        return taccBcast(buffer, bytes, taccInt8, root, communicator.tacc, nullptr);
      },
      [&] { return pass(buffer, count, type, root, comm); },
      [&] { return lookAtBcast<Count>(function, name, buffer, count, type, root, comm, pass); },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(count, type, root));
      });
}

template <class Count>
[[gnu::noinline]] int serveAllgather(Function function, const char* name, const void* send, Count sendCount,
                                     MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                     MPI_Comm comm, TwoBuffers<Count> pass) {
  const std::size_t sent = blockBytes(send, sendCount, sendType),
                    received = blockBytes(receive, receiveCount, receiveType);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        return bytesApart(send, sent, 1, receive, received, communicator.ranks);
      },
      [&](const Communicator& communicator, std::size_t bytes) {
        return taccAllGather(send, receive, bytes, taccInt8, communicator.tacc, nullptr);
      },
      [&] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, comm); },
      [&] {
        return lookAtAllgather<Count>(function, name, send, sendCount, sendType, receive, receiveCount, receiveType,
                                      comm, pass);
      },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(sendCount, sendType, receiveCount, receiveType));
      });
}

template <class Count>
[[gnu::noinline]] int serveAlltoall(Function function, const char* name, const void* send, Count sendCount,
                                    MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                    MPI_Comm comm, TwoBuffers<Count> pass) {
  const std::size_t sent = blockBytes(send, sendCount, sendType),
                    received = blockBytes(receive, receiveCount, receiveType);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        return bytesApart(send, sent, communicator.ranks, receive, received, communicator.ranks);
      },
      [&](const Communicator& communicator, std::size_t bytes) {
        return taccAllToAll(send, receive, bytes, taccInt8, communicator.tacc, nullptr);
      },
      [&] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, comm); },
      [&] {
        return lookAtAlltoall<Count>(function, name, send, sendCount, sendType, receive, receiveCount, receiveType,
                                     comm, pass);
      },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(sendCount, sendType, receiveCount, receiveType));
      });
}

template <class Count>
[[gnu::noinline]] int serveGather(Function function, const char* name, const void* send, Count sendCount,
                                  MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                  int root, MPI_Comm comm, TwoBuffersAndRoot<Count> pass) {
  const std::size_t sent = blockBytes(send, sendCount, sendType);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        if (!isRank(root, communicator)) return unclear;
        if (communicator.rank != root) return sent;
        return bytesApart(send, sent, 1, receive, blockBytes(receive, receiveCount, receiveType), communicator.ranks);
      },
      [&](const Communicator& communicator, std::size_t bytes) {
        return taccGather(send, communicator.rank == root ? receive : nullptr, bytes, taccInt8, root, communicator.tacc,
                          nullptr);
      },
      [&] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); },
      [&] {
        return lookAtGather<Count>(function, name, send, sendCount, sendType, receive, receiveCount, receiveType, root,
                                   comm, pass);
      },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(sendCount, sendType, receiveCount, receiveType, root));
      });
}

template <class Count>
[[gnu::noinline]] int serveScatter(Function function, const char* name, const void* send, Count sendCount,
                                   MPI_Datatype sendType, void* receive, Count receiveCount, MPI_Datatype receiveType,
                                   int root, MPI_Comm comm, TwoBuffersAndRoot<Count> pass) {
  const std::size_t received = blockBytes(receive, receiveCount, receiveType);
  return serve(
      function, name, comm,
      [&](const Communicator& communicator) {
        if (!isRank(root, communicator)) return unclear;
        if (communicator.rank != root) return received;
        return received == blockBytes(send, sendCount, sendType) ? received : unclear;
      },
      [&](const Communicator& communicator, std::size_t bytes) {
        return taccScatter(communicator.rank == root ? send : nullptr, receive, bytes, taccInt8, root,
                           communicator.tacc, nullptr);
      },
      [&] { return pass(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); },
      [&] {
        return lookAtScatter<Count>(function, name, send, sendCount, sendType, receive, receiveCount, receiveType, root,
                                    comm, pass);
      },
      [&](Communicator& communicator, std::size_t bytes) {
        noteReady(function, communicator, bytes, wordsOf(sendCount, sendType, receiveCount, receiveType, root));
      });
}

[[gnu::noinline]] int serveBarrier(MPI_Comm comm) {
  return serve(
      Function::Barrier, "MPI_Barrier", comm, [](const Communicator&) { return std::size_t{0}; },
      [](const Communicator& communicator, std::size_t) { return taccBarrier(communicator.tacc, nullptr); },
      [&] { return PMPI_Barrier(comm); }, [&] { return lookAtBarrier(comm); },
      [](Communicator& communicator, std::size_t bytes) {
        noteReady(Function::Barrier, communicator, bytes, wordsOf());
      });
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_ENTRY taccMpi_Barrier(MPI_Comm comm) {
  if (const ReadyCall* const ready = findReady(Function::Barrier, comm, wordsOf()); ready && ready->calls->take())
    return runReady(Function::Barrier, "MPI_Barrier", *ready,
                    [ready] { return taccBarrier(ready->communicator->tacc, nullptr); });
  return serveBarrier(comm);
}

// With `int` counts, and with large ones where the MPI has them.
#define TACC_MPI_MOVEMENTS(suffix, Count)                                                                             \
  TACC_MPI_ENTRY taccMpi_Bcast##suffix(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {       \
    const Function function = Function::Bcast##suffix;                                                                \
    if (const ReadyCall* const ready = findReady(function, comm, wordsOf(count, type, root));                         \
        ready && buffer != MPI_IN_PLACE && ready->calls->take())                                                      \
      return runReady(function, "MPI_Bcast" #suffix, *ready, [=] {                                                    \
        return taccBcast(buffer, ready->bytes, taccInt8, root, ready->communicator->tacc, nullptr);                   \
      });                                                                                                             \
    return serveBcast<Count>(function, "MPI_Bcast" #suffix, buffer, count, type, root, comm, PMPI_Bcast##suffix);     \
  }                                                                                                                   \
  TACC_MPI_ENTRY taccMpi_Allgather##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,   \
                                           Count receiveCount, MPI_Datatype receiveType, MPI_Comm comm) {             \
    const Function function = Function::Allgather##suffix;                                                            \
    if (const ReadyCall* const ready =                                                                                \
            findReady(function, comm, wordsOf(sendCount, sendType, receiveCount, receiveType));                       \
        ready && areReady(send, 1, receive, ready->communicator->ranks, ready->bytes) && ready->calls->take())        \
      return runReady(function, "MPI_Allgather" #suffix, *ready, [=] {                                                \
        return taccAllGather(send, receive, ready->bytes, taccInt8, ready->communicator->tacc, nullptr);              \
      });                                                                                                             \
    return serveAllgather<Count>(function, "MPI_Allgather" #suffix, send, sendCount, sendType, receive, receiveCount, \
                                 receiveType, comm, PMPI_Allgather##suffix);                                          \
  }                                                                                                                   \
  TACC_MPI_ENTRY taccMpi_Alltoall##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,    \
                                          Count receiveCount, MPI_Datatype receiveType, MPI_Comm comm) {              \
    const Function function = Function::Alltoall##suffix;                                                             \
    if (const ReadyCall* const ready =                                                                                \
            findReady(function, comm, wordsOf(sendCount, sendType, receiveCount, receiveType));                       \
        ready && areReady(send, ready->communicator->ranks, receive, ready->communicator->ranks, ready->bytes) &&     \
        ready->calls->take())                                                                                         \
      return runReady(function, "MPI_Alltoall" #suffix, *ready, [=] {                                                 \
        return taccAllToAll(send, receive, ready->bytes, taccInt8, ready->communicator->tacc, nullptr);               \
      });                                                                                                             \
    return serveAlltoall<Count>(function, "MPI_Alltoall" #suffix, send, sendCount, sendType, receive, receiveCount,   \
                                receiveType, comm, PMPI_Alltoall##suffix);                                            \
  }                                                                                                                   \
  TACC_MPI_ENTRY taccMpi_Gather##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,      \
                                        Count receiveCount, MPI_Datatype receiveType, int root, MPI_Comm comm) {      \
    const Function function = Function::Gather##suffix;                                                               \
    if (const ReadyCall* const ready =                                                                                \
            findReady(function, comm, wordsOf(sendCount, sendType, receiveCount, receiveType, root));                 \
        ready &&                                                                                                      \
        (ready->communicator->rank == root ? areReady(send, 1, receive, ready->communicator->ranks, ready->bytes)     \
                                           : send != MPI_IN_PLACE) &&                                                 \
        ready->calls->take())                                                                                         \
      return runReady(function, "MPI_Gather" #suffix, *ready, [=] {                                                   \
        return taccGather(send, receive, ready->bytes, taccInt8, root, ready->communicator->tacc, nullptr);           \
      });                                                                                                             \
    return serveGather<Count>(function, "MPI_Gather" #suffix, send, sendCount, sendType, receive, receiveCount,       \
                              receiveType, root, comm, PMPI_Gather##suffix);                                          \
  }                                                                                                                   \
  TACC_MPI_ENTRY taccMpi_Scatter##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,     \
                                         Count receiveCount, MPI_Datatype receiveType, int root, MPI_Comm comm) {     \
    const Function function = Function::Scatter##suffix;                                                              \
    if (const ReadyCall* const ready =                                                                                \
            findReady(function, comm, wordsOf(sendCount, sendType, receiveCount, receiveType, root));                 \
        ready && receive != MPI_IN_PLACE && (send != MPI_IN_PLACE || ready->communicator->rank != root) &&            \
        ready->calls->take())                                                                                         \
      return runReady(function, "MPI_Scatter" #suffix, *ready, [=] {                                                  \
        return taccScatter(send, receive, ready->bytes, taccInt8, root, ready->communicator->tacc, nullptr);          \
      });                                                                                                             \
    return serveScatter<Count>(function, "MPI_Scatter" #suffix, send, sendCount, sendType, receive, receiveCount,     \
                               receiveType, root, comm, PMPI_Scatter##suffix);                                        \
  }

TACC_MPI_MOVEMENTS(, int)
#if MPI_VERSION >= 4
TACC_MPI_MOVEMENTS(_c, MPI_Count)
#endif
