#include "shared_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "communicators.hpp"
#include "meeting.hpp"
#include "tacc/mpi_transport.h"

namespace tacc::mpi {
namespace {

constexpr int tagsOfRange = 32768;  // the fewest that a transport may have

}  // namespace

struct MessageRange {
  taccMpiContext_t world;
  std::vector<int> ranks;  // of the communicator, in the world
  TagRanges& owner;
  int number;
  bool isKept = false;  // for ever
  MessageRange(MPI_Comm all, std::vector<int> places, TagRanges& ranges, int range)
      : world{all}, ranks(std::move(places)), owner(ranges), number(range) {}
  ~MessageRange() {
    if (!isKept) owner.giveBack(number);
  }
  MessageRange(const MessageRange&) = delete;
  MessageRange& operator=(const MessageRange&) = delete;
  std::uint32_t firstTag() const { return static_cast<std::uint32_t>(number) * tagsOfRange; }
};

namespace {

/// The context of a table: its own share of the range.
using Share = std::shared_ptr<MessageRange>;

MessageRange& rangeOf(void* context) { return **static_cast<Share*>(context); }

taccResult_t sendInRange(void* context, int peer, std::uint32_t tag, const void* data, std::size_t bytes,
                         void** request) {
  MessageRange& range = rangeOf(context);
  return taccMpiSend(&range.world, range.ranks[static_cast<std::size_t>(peer)], range.firstTag() + tag, data, bytes,
                     request);
}

taccResult_t receiveInRange(void* context, int peer, std::uint32_t tag, void* data, std::size_t capacity,
                            void** request) {
  MessageRange& range = rangeOf(context);
  return taccMpiReceive(&range.world, range.ranks[static_cast<std::size_t>(peer)], range.firstTag() + tag, data,
                        capacity, request);
}

/// Of what is cancelled the other side may be on its way.
taccResult_t cancelInRange(void* context, void** request) {
  rangeOf(context).isKept = true;
  return taccMpiCancel(&rangeOf(context).world, request);
}

void endRange(void* context) { delete static_cast<Share*>(context); }

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

RangeAgreement agreementOver(MPI_Comm mpi) {
  return {[mpi](int mine) {
            int most = 0;
            reduceOfAll(&mine, &most, 1, MPI_INT, MPI_MAX, mpi);
            return most;
          },
          [mpi](bool mine) {
            int is = mine ? 1 : 0, are = 0;
            reduceOfAll(&is, &are, 1, MPI_INT, MPI_MIN, mpi);
            return are != 0;
          },
          [mpi](std::vector<std::uint64_t>& words) {
            std::vector<std::uint64_t> mine = words;
            reduceOfAll(mine.data(), words.data(), static_cast<int>(words.size()), MPI_UINT64_T, MPI_BOR, mpi);
          }};
}

}  // namespace

void SharedMessages::open() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &world_);
  PMPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  int* upperBound = nullptr;
  int isKnown = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&upperBound), &isKnown);
  ranges_.open(isKnown != 0 ? static_cast<int>((std::int64_t{*upperBound} + 1) / tagsOfRange) : 1);
}

void SharedMessages::close() noexcept {
  if (isOpen()) PMPI_Comm_free(&world_);
}

taccResult_t SharedMessages::fill(Communicator& communicator, taccTransport_t& transport) {
  const std::optional<int> number = ranges_.take(agreementOver(communicator.mpi));
  if (!number) return taccMpiTransport(communicator.mpi, &transport);
  communicator.messages = std::make_shared<MessageRange>(world_, ranksInWorld(communicator), ranges_, *number);
  transport = {sizeof(taccTransport_t),
               TACC_TRANSPORT_VERSION,
               "mpi",
               new Share(communicator.messages),
               tagsOfRange - 1,
               sendInRange,
               receiveInRange,
               taccMpiTest,
               cancelInRange,
               endRange};
  return taccSuccess;
}

void SharedMessages::keepRange(const Communicator& communicator) noexcept {
  if (communicator.messages != nullptr) communicator.messages->isKept = true;
}

}  // namespace tacc::mpi
