// Collectives that move data as it is. MPI's rules: what one rank sends and another one receives has the same numbers
// in the same order, so as many bytes; the types may differ, also in gaps. So all types are taken over: those with
// gaps, or with an order of their own, through copies that MPI packs.
#include <optional>

#include "elements.hpp"
#include "plugin.hpp"
#include "types.hpp"

namespace tacc::mpi {
namespace {

using Use = Block::Use;

Elements elementsAt(const void* address, int count, MPI_Datatype type) {
  return {const_cast<void*>(address), static_cast<std::size_t>(count), type};
}

/// `count` elements of `type`: what goes from one rank to another.
Judged judgeMovement(int count, MPI_Datatype type) {
  const std::optional<std::size_t> bytes = bytesOf(type);
  if (!bytes || count < 0) return {Passed::arguments};
  return {std::nullopt, *bytes * static_cast<std::size_t>(count)};
}

Judged judgeRooted(int root, const Communicator& communicator, int count, MPI_Datatype type) {
  return root < 0 || root >= communicator.ranks ? Judged{Passed::arguments} : judgeMovement(count, type);
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

taccResult_t allGather(const void* send, int sendCount, MPI_Datatype sendType, const Elements& receive,
                       const Communicator& communicator) {
  const std::size_t bytes = receive.bytes();
  const Block to(receive.ofAll(communicator.ranks), Use::write);
  if (send == MPI_IN_PLACE) {
    std::byte* const own = to.data() + bytes * static_cast<std::size_t>(communicator.rank);
    copyInto(receive.block(communicator.rank), own);
    return delivered(taccAllGather(own, to.data(), bytes, taccInt8, communicator.tacc, nullptr), to);
  }
  const Block from(elementsAt(send, sendCount, sendType), Use::read);
  return delivered(taccAllGather(from.data(), to.data(), bytes, taccInt8, communicator.tacc, nullptr), to);
}

taccResult_t allToAll(const void* send, int sendCount, MPI_Datatype sendType, const Elements& receive,
                      const Communicator& communicator) {
  const bool inPlace = send == MPI_IN_PLACE;
  const Block to(receive.ofAll(communicator.ranks), inPlace ? Use::both : Use::write);
  if (inPlace)
    return delivered(taccAllToAll(to.data(), to.data(), receive.bytes(), taccInt8, communicator.tacc, nullptr), to);
  const Block from(elementsAt(send, sendCount, sendType).ofAll(communicator.ranks), Use::read);
  return delivered(taccAllToAll(from.data(), to.data(), receive.bytes(), taccInt8, communicator.tacc, nullptr), to);
}

/// On the root.
taccResult_t gatherHere(const void* send, int sendCount, MPI_Datatype sendType, const Elements& receive,
                        const Communicator& communicator) {
  const std::size_t bytes = receive.bytes();
  const int root = communicator.rank;
  const Block to(receive.ofAll(communicator.ranks), Use::write);
  if (send == MPI_IN_PLACE) {
    std::byte* const own = to.data() + bytes * static_cast<std::size_t>(root);
    copyInto(receive.block(root), own);
    return delivered(taccGather(own, to.data(), bytes, taccInt8, root, communicator.tacc, nullptr), to);
  }
  const Block from(elementsAt(send, sendCount, sendType), Use::read);
  return delivered(taccGather(from.data(), to.data(), bytes, taccInt8, root, communicator.tacc, nullptr), to);
}

/// On the root.
taccResult_t scatterHere(const Elements& send, void* receive, int receiveCount, MPI_Datatype receiveType,
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

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_ENTRY taccMpi_Barrier(MPI_Comm comm) {
  return takeOver(
      Function::Barrier, "MPI_Barrier", comm, [](const Communicator&) { return Judged{}; },
      [](const Communicator& communicator) { return taccBarrier(communicator.tacc, nullptr); },
      [&] { return PMPI_Barrier(comm); });
}

TACC_MPI_ENTRY taccMpi_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return takeOver(
      Function::Bcast, "MPI_Bcast", comm,
      [&](const Communicator& communicator) { return judgeRooted(root, communicator, count, type); },
      [&](const Communicator& communicator) { return broadcast(elementsAt(buffer, count, type), root, communicator); },
      [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

TACC_MPI_ENTRY taccMpi_Allgather(const void* send, int sendCount, MPI_Datatype sendType, void* receive,
                                 int receiveCount, MPI_Datatype receiveType, MPI_Comm comm) {
  return takeOver(
      Function::Allgather, "MPI_Allgather", comm,
      [&](const Communicator&) { return judgeMovement(receiveCount, receiveType); },
      [&](const Communicator& communicator) {
        return allGather(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
      },
      [&] { return PMPI_Allgather(send, sendCount, sendType, receive, receiveCount, receiveType, comm); });
}

TACC_MPI_ENTRY taccMpi_Alltoall(const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,
                                MPI_Datatype receiveType, MPI_Comm comm) {
  return takeOver(
      Function::Alltoall, "MPI_Alltoall", comm,
      [&](const Communicator&) { return judgeMovement(receiveCount, receiveType); },
      [&](const Communicator& communicator) {
        return allToAll(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
      },
      [&] { return PMPI_Alltoall(send, sendCount, sendType, receive, receiveCount, receiveType, comm); });
}

TACC_MPI_ENTRY taccMpi_Gather(const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,
                              MPI_Datatype receiveType, int root, MPI_Comm comm) {
  return takeOver(
      Function::Gather, "MPI_Gather", comm,
      [&](const Communicator& communicator) {
        return communicator.rank == root ? judgeRooted(root, communicator, receiveCount, receiveType)
                                         : judgeRooted(root, communicator, sendCount, sendType);
      },
      [&](const Communicator& communicator) {
        if (communicator.rank == root)
          return gatherHere(send, sendCount, sendType, elementsAt(receive, receiveCount, receiveType), communicator);
        const Elements elements = elementsAt(send, sendCount, sendType);
        const Block from(elements, Use::read);
        return taccGather(from.data(), nullptr, elements.bytes(), taccInt8, root, communicator.tacc, nullptr);
      },
      [&] { return PMPI_Gather(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); });
}

TACC_MPI_ENTRY taccMpi_Scatter(const void* send, int sendCount, MPI_Datatype sendType, void* receive, int receiveCount,
                               MPI_Datatype receiveType, int root, MPI_Comm comm) {
  return takeOver(
      Function::Scatter, "MPI_Scatter", comm,
      [&](const Communicator& communicator) {
        return communicator.rank == root ? judgeRooted(root, communicator, sendCount, sendType)
                                         : judgeRooted(root, communicator, receiveCount, receiveType);
      },
      [&](const Communicator& communicator) {
        if (communicator.rank == root)
          return scatterHere(elementsAt(send, sendCount, sendType), receive, receiveCount, receiveType, communicator);
        const Elements elements = elementsAt(receive, receiveCount, receiveType);
        const Block to(elements, Use::write);
        return delivered(taccScatter(nullptr, to.data(), elements.bytes(), taccInt8, root, communicator.tacc, nullptr),
                         to);
      },
      [&] { return PMPI_Scatter(send, sendCount, sendType, receive, receiveCount, receiveType, root, comm); });
}
