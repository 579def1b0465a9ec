// Collectives with a count for each rank that do not run at once.
#include <cstddef>
#include <cstring>
#include <memory>

#include "communicators.hpp"
#include "elements.hpp"
#include "prepared.hpp"
#include "types.hpp"
#include "unequal.hpp"

namespace tacc::mpi {
namespace {

using Use = Block::Use;

/// Blocks with what they need, as calls that are under way cannot share it.
struct OwnBlocks {
  OwnBlocks(void* address, const Places& places, MPI_Datatype type, int ranks, Use use)
      : block(UnequalElements<MPI_Count, MPI_Aint>{address, places.counts.data(), places.displacements.data(), type},
              ranks, use, scratch) {}

  UnequalScratch scratch;
  UnequalBlock block;
};
using Blocks = std::shared_ptr<OwnBlocks>;

Blocks sentBlocks(const Arguments& a, int ranks) {
  return std::make_shared<OwnBlocks>(const_cast<void*>(a.send), a.sendPlaces, a.sendType, ranks, Use::read);
}
Blocks receivedBlocks(const Arguments& a, int ranks, Use use) {
  return std::make_shared<OwnBlocks>(a.receive, a.receivePlaces, a.receiveType, ranks, use);
}

/// One rank's own block.
struct OwnBlock {
  std::byte* data;
  std::size_t bytes;
  std::shared_ptr<void> memory;  // that it lies in, if that is not the program's
};
/// `inPlace`: it is its part of `all`, where what is there before the call has to be taken.
OwnBlock givenBlock(const Arguments& a, bool inPlace, int rank, const Blocks& all) {
  if (inPlace) {
    all->block.take(rank);
    return {all->block.block(rank), all->block.bytes(rank), all};
  }
  const Elements elements{const_cast<void*>(a.send), static_cast<std::size_t>(a.sendCount), a.sendType};
  const auto block = std::make_shared<Block>(elements, Use::read);
  return {block->data(), elements.bytes(), block};
}

Prepared allGatherV(const Arguments& a, const Communicator& communicator) {
  const Blocks to = receivedBlocks(a, communicator.ranks, Use::write);
  const OwnBlock from = givenBlock(a, a.send == MPI_IN_PLACE, communicator.rank, to);
  return {[=, comm = communicator.tacc](taccStream_t stream) {
            const UnequalBlock& all = to->block;
            return taccAllGatherV(from.data, all.data(), all.counts(), all.offsets(), taccInt8, comm, stream);
          },
          [to] { to->block.deliver(); }};
}

Prepared allToAllV(const Arguments& a, const Communicator& communicator) {
  const bool inPlace = a.send == MPI_IN_PLACE;
  const Blocks to = receivedBlocks(a, communicator.ranks, inPlace ? Use::both : Use::write);
  const Blocks from = inPlace ? to : sentBlocks(a, communicator.ranks);
  return {[=, comm = communicator.tacc](taccStream_t stream) {
            const UnequalBlock &sent = from->block, &received = to->block;
            return taccAllToAllV(sent.data(), sent.counts(), sent.offsets(), received.data(), received.counts(),
                                 received.offsets(), taccInt8, comm, stream);
          },
          [to] { to->block.deliver(); }};
}

Prepared gatherV(const Arguments& a, const Communicator& communicator) {
  const int root = a.root;
  taccComm_t const comm = communicator.tacc;
  if (communicator.rank != root) {
    const OwnBlock from = givenBlock(a, false, communicator.rank, nullptr);
    return {[=](taccStream_t stream) {
              return taccGatherV(from.data, from.bytes, nullptr, nullptr, nullptr, taccInt8, root, comm, stream);
            },
            [] {}};
  }
  const Blocks to = receivedBlocks(a, communicator.ranks, Use::write);
  const OwnBlock from = givenBlock(a, a.send == MPI_IN_PLACE, root, to);
  return {[=](taccStream_t stream) {
            const UnequalBlock& all = to->block;
            return taccGatherV(from.data, from.bytes, all.data(), all.counts(), all.offsets(), taccInt8, root, comm,
                               stream);
          },
          [to] { to->block.deliver(); }};
}

Prepared scatterV(const Arguments& a, const Communicator& communicator) {
  const int root = a.root;
  taccComm_t const comm = communicator.tacc;
  const Blocks from = communicator.rank == root ? sentBlocks(a, communicator.ranks) : nullptr;
  const bool inPlace = from != nullptr && a.receive == MPI_IN_PLACE;
  const Elements elements{a.receive, static_cast<std::size_t>(a.receiveCount), a.receiveType};
  const auto to = inPlace ? nullptr : std::make_shared<Block>(elements, Use::write);
  std::byte* const data = inPlace ? from->block.block(root) : to->data();
  const std::size_t bytes = inPlace ? from->block.bytes(root) : elements.bytes();
  return {[=](taccStream_t stream) {
            if (from == nullptr)
              return taccScatterV(nullptr, nullptr, nullptr, data, bytes, taccInt8, root, comm, stream);
            const UnequalBlock& all = from->block;
            return taccScatterV(all.data(), all.counts(), all.offsets(), data, bytes, taccInt8, root, comm, stream);
          },
          [to] {
            if (to) to->deliver();
          }};
}

/// In place MPI's result stands at the beginning of the buffer on every rank: it comes there by way of a block.
Prepared reduceScatterV(const Arguments& a, const Communicator& communicator) {
  const Reduction how = reductionOf(a.receiveType, a.op);
  taccComm_t const comm = communicator.tacc;
  const auto counts =
      std::make_shared<std::vector<std::size_t>>(a.receivePlaces.counts.begin(), a.receivePlaces.counts.end());
  void* const to = a.receive;
  if (a.send != MPI_IN_PLACE)
    return {[=, from = a.send](taccStream_t stream) {
              return taccReduceScatterV(from, to, counts->data(), nullptr, how.type, how.op, comm, stream);
            },
            [] {}};
  const std::size_t bytes = (*counts)[static_cast<std::size_t>(communicator.rank)] * sizeOf(how.type);
  const std::shared_ptr<std::byte[]> block(new std::byte[bytes]);
  return {[=](taccStream_t stream) {
            return taccReduceScatterV(to, block.get(), counts->data(), nullptr, how.type, how.op, comm, stream);
          },
          [=] {
            if (bytes != 0) std::memcpy(to, block.get(), bytes);
          }};
}

}  // namespace

Prepared prepareUnequal(Kind kind, const Arguments& a, const Communicator& communicator) {
  switch (kind) {
    case Kind::allgatherv:
      return allGatherV(a, communicator);
    case Kind::alltoallv:
      return allToAllV(a, communicator);
    case Kind::gatherv:
      return gatherV(a, communicator);
    case Kind::scatterv:
      return scatterV(a, communicator);
    default:
      return reduceScatterV(a, communicator);
  }
}

}  // namespace tacc::mpi
