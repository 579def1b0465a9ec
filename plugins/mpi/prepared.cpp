#include "prepared.hpp"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include "communicators.hpp"
#include "elements.hpp"
#include "types.hpp"

namespace tacc::mpi {
namespace {

using Use = Block::Use;

Elements sent(const Arguments& a) { return elementsAt(a.send, a.sendCount, a.sendType); }
Elements received(const Arguments& a) { return elementsAt(a.receive, a.receiveCount, a.receiveType); }

std::shared_ptr<Block> blockOf(const Elements& elements, Use use) { return std::make_shared<Block>(elements, use); }

using Reduce = taccResult_t (*)(const void*, void*, size_t, taccDataType_t, taccRedOp_t, taccComm_t, taccStream_t);

/// Of those whose result every rank gets: allreduce, scan, exscan.
Prepared toEvery(Reduce reduce, const Arguments& a, taccComm_t comm) {
  const Reduction how = reductionOf(a.receiveType, a.op);
  const auto count = static_cast<std::size_t>(a.receiveCount);
  void* const to = a.receive;
  const void* const from = a.send == MPI_IN_PLACE ? to : a.send;
  return {[=](taccStream_t stream) { return reduce(from, to, count, how.type, how.op, comm, stream); }, [] {}};
}

Prepared reduce(const Arguments& a, int rank, taccComm_t comm) {
  const Reduction how = reductionOf(a.receiveType, a.op);
  const auto count = static_cast<std::size_t>(a.receiveCount);
  const int root = a.root;
  void* const to = rank == root ? a.receive : nullptr;
  const void* const from = rank == root && a.send == MPI_IN_PLACE ? to : a.send;
  return {[=](taccStream_t stream) { return taccReduce(from, to, count, how.type, how.op, root, comm, stream); },
          [] {}};
}

/// In place MPI's result stands at the beginning of the buffer on every rank: it comes there by way of a block.
Prepared reduceScatter(const Arguments& a, taccComm_t comm) {
  const Reduction how = reductionOf(a.receiveType, a.op);
  const auto count = static_cast<std::size_t>(a.receiveCount);
  void* const to = a.receive;
  if (a.send != MPI_IN_PLACE)
    return {[=, from = a.send](taccStream_t stream) {
              return taccReduceScatter(from, to, count, how.type, how.op, comm, stream);
            },
            [] {}};
  const std::size_t bytes = count * sizeOf(how.type);
  const std::shared_ptr<std::byte[]> block(new std::byte[bytes]);
  return {
      [=](taccStream_t stream) { return taccReduceScatter(to, block.get(), count, how.type, how.op, comm, stream); },
      [=] { std::memcpy(to, block.get(), bytes); }};
}

Prepared broadcast(const Arguments& a, int rank, taccComm_t comm) {
  const Elements elements = received(a);
  const bool isRoot = rank == a.root;
  const auto block = blockOf(elements, isRoot ? Use::read : Use::write);
  return {[=, bytes = elements.bytes(), root = a.root](taccStream_t stream) {
            return taccBcast(block->data(), bytes, taccInt8, root, comm, stream);
          },
          [=] {
            if (!isRoot) block->deliver();
          }};
}

/// What a rank gives to a collective that gathers: its block, or in place its part of what is received.
struct Given {
  std::shared_ptr<Block> block;
  std::byte* data;
};
Given given(const Arguments& a, int rank, const std::shared_ptr<Block>& to) {
  if (a.send != MPI_IN_PLACE) {
    const auto from = blockOf(sent(a), Use::read);
    from->keepApart(*to, received(a).bytes() * static_cast<std::size_t>(rank));
    return {from, from->data()};
  }
  const Elements receive = received(a);
  std::byte* const own = to->data() + receive.bytes() * static_cast<std::size_t>(rank);
  copyInto(receive.block(rank), own);
  return {to, own};
}

Prepared allGather(const Arguments& a, const Communicator& communicator) {
  const Elements receive = received(a);
  const auto to = blockOf(receive.ofAll(communicator.ranks), Use::write);
  const Given from = given(a, communicator.rank, to);
  return {[=, bytes = receive.bytes(), comm = communicator.tacc](taccStream_t stream) {
            return taccAllGather(from.data, to->data(), bytes, taccInt8, comm, stream);
          },
          [to] { to->deliver(); }};
}

Prepared gather(const Arguments& a, const Communicator& communicator) {
  const int root = a.root;
  taccComm_t const comm = communicator.tacc;
  if (communicator.rank != root) {
    const auto from = blockOf(sent(a), Use::read);
    return {[=, bytes = sent(a).bytes()](taccStream_t stream) {
              return taccGather(from->data(), nullptr, bytes, taccInt8, root, comm, stream);
            },
            [] {}};
  }
  const Elements receive = received(a);
  const auto to = blockOf(receive.ofAll(communicator.ranks), Use::write);
  const Given from = given(a, root, to);
  return {[=, bytes = receive.bytes()](taccStream_t stream) {
            return taccGather(from.data, to->data(), bytes, taccInt8, root, comm, stream);
          },
          [to] { to->deliver(); }};
}

Prepared allToAll(const Arguments& a, const Communicator& communicator) {
  const Elements receive = received(a);
  const bool inPlace = a.send == MPI_IN_PLACE;
  const auto to = blockOf(receive.ofAll(communicator.ranks), inPlace ? Use::both : Use::write);
  const auto from = inPlace ? to : blockOf(sent(a).ofAll(communicator.ranks), Use::read);
  if (!inPlace) from->keepApart(*to, 0);
  return {[=, bytes = receive.bytes(), comm = communicator.tacc](taccStream_t stream) {
            return taccAllToAll(from->data(), to->data(), bytes, taccInt8, comm, stream);
          },
          [to] { to->deliver(); }};
}

Prepared scatter(const Arguments& a, const Communicator& communicator) {
  const int root = a.root;
  taccComm_t const comm = communicator.tacc;
  if (communicator.rank != root) {
    const auto to = blockOf(received(a), Use::write);
    return {[=, bytes = received(a).bytes()](taccStream_t stream) {
              return taccScatter(nullptr, to->data(), bytes, taccInt8, root, comm, stream);
            },
            [to] { to->deliver(); }};
  }
  const std::size_t bytes = sent(a).bytes();
  const auto from = blockOf(sent(a).ofAll(communicator.ranks), Use::read);
  if (a.receive == MPI_IN_PLACE)
    return {[=](taccStream_t stream) {
              std::byte* const own = from->data() + bytes * static_cast<std::size_t>(root);
              return taccScatter(from->data(), own, bytes, taccInt8, root, comm, stream);
            },
            [] {}};
  const auto to = blockOf(received(a), Use::write);
  return {
      [=](taccStream_t stream) { return taccScatter(from->data(), to->data(), bytes, taccInt8, root, comm, stream); },
      [to] { to->deliver(); }};
}

}  // namespace

KeptTypes::~KeptTypes() {
  for (MPI_Datatype& type : types_) PMPI_Type_free(&type);
}

MPI_Datatype KeptTypes::keep(MPI_Datatype type) {
  if (knownTypes.find(type) != nullptr) return type;
  types_.reserve(types_.size() + 1);
  MPI_Datatype kept = MPI_DATATYPE_NULL;
  // One element of it, and no duplicate: that would have the program's attributes, and MPI would call what copies them.
  if (PMPI_Type_contiguous(1, type, &kept) != MPI_SUCCESS || PMPI_Type_commit(&kept) != MPI_SUCCESS) {
    if (kept != MPI_DATATYPE_NULL) PMPI_Type_free(&kept);
    throw std::runtime_error("MPI does not keep a derived type");
  }
  types_.push_back(kept);
  return kept;
}

std::shared_ptr<KeptTypes> keepTypes(Kind kind, Arguments& arguments, int rank) {
  const bool isRoot = rank == arguments.root;
  bool sends = false, receives = false;
  switch (kind) {
    case Kind::bcast:
      receives = true;
      break;
    case Kind::allgather:
    case Kind::alltoall:
    case Kind::allgatherv:
    case Kind::alltoallv:
      sends = receives = true;
      break;
    case Kind::gather:
    case Kind::gatherv:
      sends = true;
      receives = isRoot;
      break;
    case Kind::scatter:
    case Kind::scatterv:
      sends = isRoot;
      receives = true;
      break;
    default:  // what is reduced has no derived type
      break;
  }
  auto kept = std::make_shared<KeptTypes>();
  if (sends && arguments.send != MPI_IN_PLACE) arguments.sendType = kept->keep(arguments.sendType);
  if (receives && arguments.receive != MPI_IN_PLACE) arguments.receiveType = kept->keep(arguments.receiveType);
  return kept;
}

Prepared prepare(Kind kind, const Arguments& a, const Communicator& communicator) {
  taccComm_t const comm = communicator.tacc;
  switch (kind) {
    case Kind::allreduce:
      return toEvery(taccAllReduce, a, comm);
    case Kind::scan:
      return toEvery(taccScan, a, comm);
    case Kind::exscan:
      return toEvery(taccExscan, a, comm);
    case Kind::bcast:
      return broadcast(a, communicator.rank, comm);
    case Kind::reduce:
      return reduce(a, communicator.rank, comm);
    case Kind::allgather:
      return allGather(a, communicator);
    case Kind::reduceScatterBlock:
      return reduceScatter(a, comm);
    case Kind::alltoall:
      return allToAll(a, communicator);
    case Kind::gather:
      return gather(a, communicator);
    case Kind::scatter:
      return scatter(a, communicator);
    case Kind::barrier:
      break;
    default:
      return prepareUnequal(kind, a, communicator);
  }
  return {[comm](taccStream_t stream) { return taccBarrier(comm, stream); }, [] {}};
}

}  // namespace tacc::mpi
