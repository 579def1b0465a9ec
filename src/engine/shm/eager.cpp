#include "engine/shm/eager.hpp"

#include <cstring>

namespace tacc {
namespace {

void copyUnlessSame(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace

void EagerPath::run(const EagerCall& call) {
  const Collective c = call.collective;
  const std::size_t posted = ranks_ == 1 ? 0 : eagerPostBytes(c, ranks_, call.bytes);
  const bool isRoot = rank_ == call.root;
  const bool isExclusive = c == Collective::exscan;
  // Rooted collectives: only who has data for another rank fills its payload.
  const bool fills = c == Collective::broadcast || c == Collective::scatter ? isRoot
                     : c == Collective::reduce || c == Collective::gather   ? !isRoot
                     : isPrefix(c)                                          ? rank_ + 1 < ranks_
                                                                            : true;
  if (fills && posted != 0) {
    void* payload = exchange_.payload(posted);
    copyBytes(&payload, 1, call.send, posted, call.stream);
  }
  exchange_.post();

  const std::size_t mine = static_cast<std::size_t>(rank_) * call.bytes;
  switch (c) {
    case Collective::broadcast:
    case Collective::scatter: {
      const std::size_t offset = c == Collective::scatter ? mine : 0;
      if (isRoot) return copyUnlessSame(call.receive, call.send + offset, call.bytes);
      exchange_.await(call.root);
      return copyUnlessSame(call.receive, exchange_.payloadOf(call.root, posted) + offset, call.bytes);
    }
    case Collective::reduce:
    case Collective::gather:
      if (!isRoot) return;
      exchange_.awaitAll();
      return c == Collective::reduce ? reduceAll(call, posted, 0, ranks_) : collectAll(call, posted, 0);
    case Collective::allReduce:
      exchange_.awaitAll();
      return reduceAll(call, posted, 0, ranks_);
    case Collective::scan:
    case Collective::exscan:
      for (int rank = 0; rank < rank_; ++rank) exchange_.await(rank);
      if (isExclusive && rank_ == 0) return;
      return reduceAll(call, posted, 0, isExclusive ? rank_ : rank_ + 1);
    case Collective::reduceScatter:
      exchange_.awaitAll();
      return reduceAll(call, posted, mine, ranks_);
    case Collective::allGather:
      exchange_.awaitAll();
      return collectAll(call, posted, 0);
    case Collective::allToAll:
      exchange_.awaitAll();
      return collectAll(call, posted, mine);
    case Collective::barrier:
      return exchange_.awaitAll();
  }
}

void EagerPath::reduceAll(const EagerCall& call, std::size_t posted, std::size_t offset, int ranks) {
  if (call.count == 0) return;
  for (int rank = 0; rank < ranks; ++rank)
    sources_[static_cast<std::size_t>(rank)] = (rank == rank_ ? call.send : exchange_.payloadOf(rank, posted)) + offset;
  void* destination = call.receive;
  call.reduce({.destinations = &destination,
               .destinationCount = 1,
               .sources = sources_.data(),
               .sourceCount = ranks,
               .count = call.count,
               .divisor = call.divisor});
}

void EagerPath::collectAll(const EagerCall& call, std::size_t posted, std::size_t offset) {
  for (int rank = 0; rank < ranks_; ++rank) {
    // In place, an alltoall overwrites its own input; all of it has been posted, so it is read from there.
    const bool own = rank == rank_ && call.collective != Collective::allToAll;
    const std::byte* from = own || posted == 0 ? call.send : exchange_.payloadOf(rank, posted);
    copyUnlessSame(call.receive + static_cast<std::size_t>(rank) * call.bytes, from + offset, call.bytes);
  }
}

}  // namespace tacc
