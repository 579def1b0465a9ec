#include "shared_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "communicators.hpp"
#include "tacc/mpi_transport.h"

namespace tacc::mpi {
namespace {

constexpr int tagsOfRange = 32768;  // the fewest that a transport may have

/// What the functions of one table are called with.
struct Range {
  taccMpiContext_t world;
  std::vector<int> ranks;  // of the communicator, in the world
  std::uint32_t firstTag = 0;
};

Range& rangeOf(void* context) { return *static_cast<Range*>(context); }

taccResult_t sendInRange(void* context, int peer, std::uint32_t tag, const void* data, std::size_t bytes,
                         void** request) {
  Range& range = rangeOf(context);
  return taccMpiSend(&range.world, range.ranks[static_cast<std::size_t>(peer)], range.firstTag + tag, data, bytes,
                     request);
}

taccResult_t receiveInRange(void* context, int peer, std::uint32_t tag, void* data, std::size_t capacity,
                            void** request) {
  Range& range = rangeOf(context);
  return taccMpiReceive(&range.world, range.ranks[static_cast<std::size_t>(peer)], range.firstTag + tag, data, capacity,
                        request);
}

void endRange(void* context) { delete &rangeOf(context); }

std::vector<int> ranksInWorld(const Communicator& communicator) {
  MPI_Group here = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(communicator.mpi, &here);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> own(static_cast<std::size_t>(communicator.ranks)), places(own.size());
  std::iota(own.begin(), own.end(), 0);
  PMPI_Group_translate_ranks(here, communicator.ranks, own.data(), world, places.data());
  PMPI_Group_free(&here);
  PMPI_Group_free(&world);
  return places;
}

}  // namespace

void SharedMessages::open() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &world_);
  PMPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  int* upperBound = nullptr;
  int isKnown = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&upperBound), &isKnown);
  ranges_ = isKnown != 0 ? static_cast<int>((std::int64_t{*upperBound} + 1) / tagsOfRange) : 1;
}

void SharedMessages::close() noexcept {
  if (isOpen()) PMPI_Comm_free(&world_);
}

/// One that none of the ranks has used. Other threads of some of them may look for one at the same time, over other
/// communicators, and take what was found first: then all look again. Nothing where there is none left.
std::optional<int> SharedMessages::takeRange(MPI_Comm mpi) {
  for (;;) {
    int mine = 0, found = 0;
    {
      const std::lock_guard lock(mutex_);
      mine = next_;
    }
    PMPI_Allreduce(&mine, &found, 1, MPI_INT, MPI_MAX, mpi);
    if (found >= ranges_) return std::nullopt;
    int isFree = 0, isTaken = 0;
    {
      const std::lock_guard lock(mutex_);
      isFree = found >= next_ ? 1 : 0;
      next_ = std::max(next_, found + 1);
    }
    PMPI_Allreduce(&isFree, &isTaken, 1, MPI_INT, MPI_MIN, mpi);
    if (isTaken != 0) return found;
  }
}

taccResult_t SharedMessages::fill(const Communicator& communicator, taccTransport_t& transport) {
  const std::optional<int> number = takeRange(communicator.mpi);
  if (!number) return taccMpiTransport(communicator.mpi, &transport);
  auto range = std::make_unique<Range>(Range{{world_}, ranksInWorld(communicator)});
  range->firstTag = static_cast<std::uint32_t>(*number) * tagsOfRange;
  transport = {sizeof(taccTransport_t),
               TACC_TRANSPORT_VERSION,
               "mpi",
               range.release(),
               tagsOfRange - 1,
               sendInRange,
               receiveInRange,
               taccMpiTest,
               taccMpiCancel,
               endRange};
  return taccSuccess;
}

}  // namespace tacc::mpi
