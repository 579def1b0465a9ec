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
  const CollectiveShape& shape = shapeOf(c);
  const bool fromRoot = shape.send.usedBy == UsedBy::root, toRoot = shape.receive.usedBy == UsedBy::root;
  // Only who has data for another rank fills its payload.
  const bool fills = fromRoot ? isRoot : toRoot ? !isRoot : !isPrefix(c) || rank_ + 1 < ranks_;
  const bool isTakenApart = shape.send.holds == Holds::all;
  // Of what holds a block for every rank, the own one. Nobody else reads it.
  const std::size_t mine = isTakenApart ? static_cast<std::size_t>(rank_) * call.bytes : 0;
  if (fills && posted != 0) {
    fill(call, 0, isTakenApart ? mine : posted, posted);
    if (isTakenApart) fill(call, mine + call.bytes, posted, posted);
  }
  exchange_.post();

  if (fromRoot) {
    if (isRoot) return copyUnlessSame(call.receive, call.send + mine, call.bytes);
    exchange_.await(call.root);
    return copyUnlessSame(call.receive, exchange_.payloadOf(call.root, posted) + mine, call.bytes);
  }
  if (toRoot && !isRoot) return;
  if (isPrefix(c)) {
    for (int rank = 0; rank < rank_; ++rank) exchange_.await(rank);
    if (!shape.receive.isUsedOn(rank_, call.root)) return;
    return reduceAll(call, posted, 0, shape.combines == Combines::lower ? rank_ : rank_ + 1);
  }
  exchange_.awaitAll();
  if (isReduction(c)) return reduceAll(call, posted, mine, ranks_);
  if (shape.receive.holds == Holds::all) collectAll(call, posted, mine);
}

void EagerPath::fill(const EagerCall& call, std::size_t begin, std::size_t end, std::size_t posted) {
  std::byte* const payload = exchange_.payload(posted) + begin;
  if (!call.stream) return copyUnlessSame(payload, call.send + begin, end - begin);
  void* destination = payload;
  if (begin != end) copyBytes(&destination, 1, call.send + begin, end - begin, true);
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
    // In place, an alltoall overwrites its own input, but for this rank's own block.
    const std::byte* from = rank == rank_ || posted == 0 ? call.send : exchange_.payloadOf(rank, posted);
    copyUnlessSame(call.receive + static_cast<std::size_t>(rank) * call.bytes, from + offset, call.bytes);
  }
}

}  // namespace tacc
