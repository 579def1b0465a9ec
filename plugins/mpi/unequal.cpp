// Collectives with a count for each rank.
#include "unequal.hpp"

#include <cstdint>

#include "at_once.hpp"
#include "plugin.hpp"
#include "types.hpp"
#include "unequal_judged.hpp"

namespace tacc::mpi {

void UnequalBlock::copy(Block::Use use) {
  counts_.clear();
  for (const Elements& block : blocks_) counts_.push_back(block.bytes());
  offsets_.resize(blocks_.size());
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < blocks_.size(); ++r) {
    offsets_[r] = bytes;
    bytes += counts_[r];
  }
  copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  base_ = copy_.get();
  if (use == Block::Use::write) return;
  for (std::size_t r = 0; r < blocks_.size(); ++r) copyInto(blocks_[r], base_ + offsets_[r]);
}

void UnequalBlock::deliver() const {
  if (!copy_) return;
  for (std::size_t r = 0; r < blocks_.size(); ++r) copyFrom(copy_.get() + offsets_[r], blocks_[r]);
}

namespace {

using Use = Block::Use;

taccResult_t delivered(taccResult_t result, const UnequalBlock& block) {
  if (result == taccSuccess) block.deliver();
  return result;
}

template <class Count, class Displacement>
[[gnu::noinline]] int allGather(Function function, const char* name, const void* send, Count sendCount,
                                MPI_Datatype sendType, const UnequalElements<Count, Displacement>& receive,
                                MPI_Comm comm,
                                int (*pass)(const void*, Count, MPI_Datatype, void*, const Count*, const Displacement*,
                                            MPI_Datatype, MPI_Comm)) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) { return judgeWithOwn(receive, send, sendCount, sendType, communicator); },
      [=](const Communicator& communicator) {
        const UnequalBlock to(receive, communicator.ranks, Use::write, communicator.scratch->receive);
        if (send == MPI_IN_PLACE) {
          to.take(communicator.rank);
          return delivered(taccAllGatherV(to.block(communicator.rank), to.data(), to.counts(), to.offsets(), taccInt8,
                                          communicator.tacc, nullptr),
                           to);
        }
        const Block from(elementsAt(send, sendCount, sendType), Use::read);
        return delivered(
            taccAllGatherV(from.data(), to.data(), to.counts(), to.offsets(), taccInt8, communicator.tacc, nullptr),
            to);
      },
      [=] {
        return pass(send, sendCount, sendType, receive.address, receive.counts, receive.displacements, receive.type,
                    comm);
      });
}

template <class Count, class Displacement>
[[gnu::noinline]] int gather(Function function, const char* name, const void* send, Count sendCount,
                             MPI_Datatype sendType, const UnequalElements<Count, Displacement>& receive, int root,
                             MPI_Comm comm,
                             int (*pass)(const void*, Count, MPI_Datatype, void*, const Count*, const Displacement*,
                                         MPI_Datatype, int, MPI_Comm)) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeAtRoot(receive, send, sendCount, sendType, root, communicator);
      },
      [=](const Communicator& communicator) {
        if (communicator.rank != root) {
          const Elements elements = elementsAt(send, sendCount, sendType);
          const Block from(elements, Use::read);
          return taccGatherV(from.data(), elements.bytes(), nullptr, nullptr, nullptr, taccInt8, root,
                             communicator.tacc, nullptr);
        }
        const UnequalBlock to(receive, communicator.ranks, Use::write, communicator.scratch->receive);
        if (send == MPI_IN_PLACE) {
          to.take(root);
          return delivered(taccGatherV(to.block(root), to.bytes(root), to.data(), to.counts(), to.offsets(), taccInt8,
                                       root, communicator.tacc, nullptr),
                           to);
        }
        const Elements elements = elementsAt(send, sendCount, sendType);
        const Block from(elements, Use::read);
        return delivered(taccGatherV(from.data(), elements.bytes(), to.data(), to.counts(), to.offsets(), taccInt8,
                                     root, communicator.tacc, nullptr),
                         to);
      },
      [=] {
        return pass(send, sendCount, sendType, receive.address, receive.counts, receive.displacements, receive.type,
                    root, comm);
      });
}

template <class Count, class Displacement>
[[gnu::noinline]] int scatter(Function function, const char* name, const UnequalElements<Count, Displacement>& send,
                              void* receive, Count receiveCount, MPI_Datatype receiveType, int root, MPI_Comm comm,
                              int (*pass)(const void*, const Count*, const Displacement*, MPI_Datatype, void*, Count,
                                          MPI_Datatype, int, MPI_Comm)) {
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) {
        return judgeAtRoot(send, receive, receiveCount, receiveType, root, communicator);
      },
      [=](const Communicator& communicator) {
        if (communicator.rank != root) {
          const Elements elements = elementsAt(receive, receiveCount, receiveType);
          const Block to(elements, Use::write);
          const taccResult_t result = taccScatterV(nullptr, nullptr, nullptr, to.data(), elements.bytes(), taccInt8,
                                                   root, communicator.tacc, nullptr);
          if (result == taccSuccess) to.deliver();
          return result;
        }
        const UnequalBlock from(send, communicator.ranks, Use::read, communicator.scratch->send);
        if (receive == MPI_IN_PLACE)
          return taccScatterV(from.data(), from.counts(), from.offsets(), from.block(root), from.bytes(root), taccInt8,
                              root, communicator.tacc, nullptr);
        const Elements elements = elementsAt(receive, receiveCount, receiveType);
        const Block to(elements, Use::write);
        const taccResult_t result = taccScatterV(from.data(), from.counts(), from.offsets(), to.data(),
                                                 elements.bytes(), taccInt8, root, communicator.tacc, nullptr);
        if (result == taccSuccess) to.deliver();
        return result;
      },
      [=] {
        return pass(send.address, send.counts, send.displacements, send.type, receive, receiveCount, receiveType, root,
                    comm);
      });
}

template <class Count, class Displacement>
[[gnu::noinline]] int allToAll(Function function, const char* name, const UnequalElements<Count, Displacement>& send,
                               const UnequalElements<Count, Displacement>& receive, MPI_Comm comm,
                               int (*pass)(const void*, const Count*, const Displacement*, MPI_Datatype, void*,
                                           const Count*, const Displacement*, MPI_Datatype, MPI_Comm)) {
  const bool inPlace = send.address == MPI_IN_PLACE;
  return takeOver(
      function, name, comm,
      [=](const Communicator& communicator) { return judgeAllToAllV(send, receive, communicator); },
      [=](const Communicator& communicator) {
        const UnequalBlock to(receive, communicator.ranks, inPlace ? Use::both : Use::write,
                              communicator.scratch->receive);
        if (inPlace)
          return delivered(taccAllToAllV(to.data(), to.counts(), to.offsets(), to.data(), to.counts(), to.offsets(),
                                         taccInt8, communicator.tacc, nullptr),
                           to);
        const UnequalBlock from(send, communicator.ranks, Use::read, communicator.scratch->send);
        return delivered(taccAllToAllV(from.data(), from.counts(), from.offsets(), to.data(), to.counts(), to.offsets(),
                                       taccInt8, communicator.tacc, nullptr),
                         to);
      },
      [=] {
        return pass(send.address, send.counts, send.displacements, send.type, receive.address, receive.counts,
                    receive.displacements, receive.type, comm);
      });
}

}  // namespace
}  // namespace tacc::mpi

using namespace tacc::mpi;

// With `int` counts, and with large ones where the MPI has them.
#define TACC_MPI_UNEQUAL(suffix, Count, Displacement)                                                                  \
  TACC_MPI_ENTRY taccMpi_Allgatherv##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,   \
                                            const Count* counts, const Displacement* displacements, MPI_Datatype type, \
                                            MPI_Comm comm) {                                                           \
    const UnequalElements<Count, Displacement> all{receive, counts, displacements, type};                              \
    return serve(                                                                                                      \
        Function::Allgatherv##suffix, "MPI_Allgatherv" #suffix, comm,                                                  \
        [&](const Communicator& communicator) {                                                                        \
          return areBlocks(type) && blockBytes(send, sendCount, sendType) != unclear                                   \
                     ? bytesOf(judgeWithOwn(all, send, sendCount, sendType, communicator))                             \
                     : unclear;                                                                                        \
        },                                                                                                             \
        [&](const Communicator& communicator, std::size_t) {                                                           \
          const FoundBlocks to = findBlocks(all, communicator.ranks, communicator.scratch->receive);                   \
          return taccAllGatherV(send, to.base, to.counts, to.offsets, taccInt8, communicator.tacc, nullptr);           \
        },                                                                                                             \
        [&] {                                                                                                          \
          return PMPI_Allgatherv##suffix(send, sendCount, sendType, receive, counts, displacements, type, comm);       \
        },                                                                                                             \
        [&] {                                                                                                          \
          return allGather<Count, Displacement>(Function::Allgatherv##suffix, "MPI_Allgatherv" #suffix, send,          \
                                                sendCount, sendType, all, comm, PMPI_Allgatherv##suffix);              \
        });                                                                                                            \
  }                                                                                                                    \
  TACC_MPI_ENTRY taccMpi_Gatherv##suffix(const void* send, Count sendCount, MPI_Datatype sendType, void* receive,      \
                                         const Count* counts, const Displacement* displacements, MPI_Datatype type,    \
                                         int root, MPI_Comm comm) {                                                    \
    const UnequalElements<Count, Displacement> all{receive, counts, displacements, type};                              \
    const std::size_t own = blockBytes(send, sendCount, sendType);                                                     \
    return serve(                                                                                                      \
        Function::Gatherv##suffix, "MPI_Gatherv" #suffix, comm,                                                        \
        [&](const Communicator& communicator) {                                                                        \
          return own != unclear && (communicator.rank != root || areBlocks(type))                                      \
                     ? bytesOf(judgeAtRoot(all, send, sendCount, sendType, root, communicator))                        \
                     : unclear;                                                                                        \
        },                                                                                                             \
        [&](const Communicator& communicator, std::size_t) {                                                           \
          if (communicator.rank != root)                                                                               \
            return taccGatherV(send, own, nullptr, nullptr, nullptr, taccInt8, root, communicator.tacc, nullptr);      \
          const FoundBlocks to = findBlocks(all, communicator.ranks, communicator.scratch->receive);                   \
          return taccGatherV(send, own, to.base, to.counts, to.offsets, taccInt8, root, communicator.tacc, nullptr);   \
        },                                                                                                             \
        [&] {                                                                                                          \
          return PMPI_Gatherv##suffix(send, sendCount, sendType, receive, counts, displacements, type, root, comm);    \
        },                                                                                                             \
        [&] {                                                                                                          \
          return gather<Count, Displacement>(Function::Gatherv##suffix, "MPI_Gatherv" #suffix, send, sendCount,        \
                                             sendType, all, root, comm, PMPI_Gatherv##suffix);                         \
        });                                                                                                            \
  }                                                                                                                    \
  TACC_MPI_ENTRY taccMpi_Scatterv##suffix(const void* send, const Count* counts, const Displacement* displacements,    \
                                          MPI_Datatype type, void* receive, Count receiveCount,                        \
                                          MPI_Datatype receiveType, int root, MPI_Comm comm) {                         \
    const UnequalElements<Count, Displacement> all{const_cast<void*>(send), counts, displacements, type};              \
    const std::size_t own = blockBytes(receive, receiveCount, receiveType);                                            \
    return serve(                                                                                                      \
        Function::Scatterv##suffix, "MPI_Scatterv" #suffix, comm,                                                      \
        [&](const Communicator& communicator) {                                                                        \
          return own != unclear && (communicator.rank != root || areBlocks(type))                                      \
                     ? bytesOf(judgeAtRoot(all, receive, receiveCount, receiveType, root, communicator))               \
                     : unclear;                                                                                        \
        },                                                                                                             \
        [&](const Communicator& communicator, std::size_t) {                                                           \
          if (communicator.rank != root)                                                                               \
            return taccScatterV(nullptr, nullptr, nullptr, receive, own, taccInt8, root, communicator.tacc, nullptr);  \
          const FoundBlocks from = findBlocks(all, communicator.ranks, communicator.scratch->send);                    \
          return taccScatterV(from.base, from.counts, from.offsets, receive, own, taccInt8, root, communicator.tacc,   \
                              nullptr);                                                                                \
        },                                                                                                             \
        [&] {                                                                                                          \
          return PMPI_Scatterv##suffix(send, counts, displacements, type, receive, receiveCount, receiveType, root,    \
                                       comm);                                                                          \
        },                                                                                                             \
        [&] {                                                                                                          \
          return scatter<Count, Displacement>(Function::Scatterv##suffix, "MPI_Scatterv" #suffix, all, receive,        \
                                              receiveCount, receiveType, root, comm, PMPI_Scatterv##suffix);           \
        });                                                                                                            \
  }                                                                                                                    \
  TACC_MPI_ENTRY taccMpi_Alltoallv##suffix(                                                                            \
      const void* send, const Count* sendCounts, const Displacement* sendPlaces, MPI_Datatype sendType, void* receive, \
      const Count* receiveCounts, const Displacement* receivePlaces, MPI_Datatype receiveType, MPI_Comm comm) {        \
    const UnequalElements<Count, Displacement> given{const_cast<void*>(send), sendCounts, sendPlaces, sendType},       \
        taken{receive, receiveCounts, receivePlaces, receiveType};                                                     \
    return serve(                                                                                                      \
        Function::Alltoallv##suffix, "MPI_Alltoallv" #suffix, comm,                                                    \
        [&](const Communicator& communicator) {                                                                        \
          return send != MPI_IN_PLACE && areBlocks(sendType) && areBlocks(receiveType)                                 \
                     ? bytesOf(judgeAllToAllV(given, taken, communicator))                                             \
                     : unclear;                                                                                        \
        },                                                                                                             \
        [&](const Communicator& communicator, std::size_t) {                                                           \
          const FoundBlocks from = findBlocks(given, communicator.ranks, communicator.scratch->send),                  \
                            to = findBlocks(taken, communicator.ranks, communicator.scratch->receive);                 \
          return taccAllToAllV(from.base, from.counts, from.offsets, to.base, to.counts, to.offsets, taccInt8,         \
                               communicator.tacc, nullptr);                                                            \
        },                                                                                                             \
        [&] {                                                                                                          \
          return PMPI_Alltoallv##suffix(send, sendCounts, sendPlaces, sendType, receive, receiveCounts, receivePlaces, \
                                        receiveType, comm);                                                            \
        },                                                                                                             \
        [&] {                                                                                                          \
          return allToAll<Count, Displacement>(Function::Alltoallv##suffix, "MPI_Alltoallv" #suffix, given, taken,     \
                                               comm, PMPI_Alltoallv##suffix);                                          \
        });                                                                                                            \
  }

TACC_MPI_UNEQUAL(, int, int)
#if MPI_VERSION >= 4
TACC_MPI_UNEQUAL(_c, MPI_Count, MPI_Aint)
#endif
