// Collectives that reduce. MPI's rules: type, operation, count, and whether it is in place are the same on all ranks.
#include <cstring>
#include <memory>
#include <optional>

#include "elements.hpp"
#include "plugin.hpp"
#include "types.hpp"

namespace tacc::mpi {
namespace {

using Use = Block::Use;

/// `elements`: all that a rank gives.
Judged judgeReduction(std::ptrdiff_t elements, MPI_Datatype type, MPI_Op op) {
  if (elements < 0 || type == MPI_DATATYPE_NULL || op == MPI_OP_NULL) return {Passed::arguments};
  const std::optional<taccDataType_t> known = reducedType(type);
  if (!known) return {Passed::type};
  if (!reducedBy(op)) return {Passed::operation};
  return {std::nullopt, static_cast<std::size_t>(elements) * sizeOf(*known)};
}

/// MPI takes what it only reads as const; copies of it are made by functions that also write.
void* readable(const void* buffer) { return const_cast<void*>(buffer); }

taccResult_t allReduce(const void* send, void* receive, std::size_t count, taccDataType_t type, taccRedOp_t op,
                       const Communicator& communicator) {
  const bool inPlace = send == MPI_IN_PLACE;
  const Numbers to(receive, count, type, inPlace ? Use::both : Use::write);
  const Numbers from(inPlace ? to.data() : readable(send), count, type, Use::read);
  const taccResult_t result = taccAllReduce(from.data(), to.data(), count, type, op, communicator.tacc, nullptr);
  if (result == taccSuccess) to.deliver();
  return result;
}

taccResult_t reduce(const void* send, void* receive, std::size_t count, taccDataType_t type, taccRedOp_t op, int root,
                    const Communicator& communicator) {
  if (communicator.rank != root) {
    const Numbers from(readable(send), count, type, Use::read);
    return taccReduce(from.data(), nullptr, count, type, op, root, communicator.tacc, nullptr);
  }
  const bool inPlace = send == MPI_IN_PLACE;
  const Numbers to(receive, count, type, inPlace ? Use::both : Use::write);
  const Numbers from(inPlace ? to.data() : readable(send), count, type, Use::read);
  const taccResult_t result = taccReduce(from.data(), to.data(), count, type, op, root, communicator.tacc, nullptr);
  if (result == taccSuccess) to.deliver();
  return result;
}

/// MPI's result in place stands at the beginning of the buffer on every rank, tacc's where the rank's own block was.
taccResult_t reduceScatter(const void* send, void* receive, std::size_t count, taccDataType_t type, taccRedOp_t op,
                           const Communicator& communicator) {
  const bool inPlace = send == MPI_IN_PLACE;
  const std::size_t all = count * static_cast<std::size_t>(communicator.ranks);
  const Numbers from(inPlace ? receive : readable(send), all, type, Use::read);
  if (!inPlace) {
    const Numbers to(receive, count, type, Use::write);
    const taccResult_t result = taccReduceScatter(from.data(), to.data(), count, type, op, communicator.tacc, nullptr);
    if (result == taccSuccess) to.deliver();
    return result;
  }
  const std::size_t bytes = count * sizeOf(type);
  const auto block = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const taccResult_t result = taccReduceScatter(from.data(), block.get(), count, type, op, communicator.tacc, nullptr);
  if (result == taccSuccess) std::memcpy(receive, block.get(), bytes);
  return result;
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

TACC_MPI_ENTRY taccMpi_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                                 MPI_Comm comm) {
  return takeOver(
      Function::Allreduce, "MPI_Allreduce", comm, [&](const Communicator&) { return judgeReduction(count, type, op); },
      [&](const Communicator& communicator) {
        return allReduce(send, receive, static_cast<std::size_t>(count), *reducedType(type), *reducedBy(op),
                         communicator);
      },
      [&] { return PMPI_Allreduce(send, receive, count, type, op, comm); });
}

TACC_MPI_ENTRY taccMpi_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
                              MPI_Comm comm) {
  return takeOver(
      Function::Reduce, "MPI_Reduce", comm,
      [&](const Communicator& communicator) {
        return root < 0 || root >= communicator.ranks ? Judged{Passed::arguments} : judgeReduction(count, type, op);
      },
      [&](const Communicator& communicator) {
        return reduce(send, receive, static_cast<std::size_t>(count), *reducedType(type), *reducedBy(op), root,
                      communicator);
      },
      [&] { return PMPI_Reduce(send, receive, count, type, op, root, comm); });
}

TACC_MPI_ENTRY taccMpi_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                                            MPI_Comm comm) {
  return takeOver(
      Function::Reduce_scatter_block, "MPI_Reduce_scatter_block", comm,
      [&](const Communicator& communicator) {
        return judgeReduction(static_cast<std::ptrdiff_t>(count) * communicator.ranks, type, op);
      },
      [&](const Communicator& communicator) {
        return reduceScatter(send, receive, static_cast<std::size_t>(count), *reducedType(type), *reducedBy(op),
                             communicator);
      },
      [&] { return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm); });
}
