#include "engine/shm/eager.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tacc {
namespace {

/// Some bytes as one number: both are read before either is written.
template <class Number>
void copyEnds(std::byte* to, const std::byte* from, std::size_t bytes) {
  Number first, last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

/// The shortest without a call of memcpy(), which takes as long as a tenth of theirs.
[[gnu::always_inline]] inline void copyUnlessSame(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to == from || bytes == 0) return;
  if (bytes > 2 * sizeof(std::uint64_t)) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= sizeof(std::uint64_t)) {
    copyEnds<std::uint64_t>(to, from, bytes);
  } else if (bytes >= sizeof(std::uint32_t)) {
    copyEnds<std::uint32_t>(to, from, bytes);
  } else if (bytes >= sizeof(std::uint16_t)) {
    copyEnds<std::uint16_t>(to, from, bytes);
  } else {
    *to = *from;
  }
}

}  // namespace

template <Collective c>
[[gnu::always_inline]] inline void EagerPath::runAs(const EagerCall& call) {
  constexpr CollectiveShape shape = shapeOf(c);
  constexpr bool fromRoot = shape.send.usedBy == UsedBy::root, toRoot = shape.receive.usedBy == UsedBy::root;
  // Of what holds a block for every rank, the own one. Nobody else reads it.
  constexpr bool isTakenApart = shape.send.holds == Holds::all;
  const std::size_t mine = isTakenApart ? static_cast<std::size_t>(rank_) * call.bytes : 0;
  const bool isRoot = rank_ == call.root;
  // Only who has data for another rank fills its payload.
  const bool fills = fromRoot ? isRoot : toRoot ? !isRoot : !isPrefix(c) || rank_ + 1 < ranks_;
  if (fills && call.posted != 0) {
    fill(call, 0, isTakenApart ? mine : call.posted);
    if constexpr (isTakenApart) fill(call, mine + call.bytes, call.posted);
  }
  exchange_.post();

  if constexpr (fromRoot) {
    if (isRoot) return copyUnlessSame(call.receive, call.send + mine, call.bytes);
    exchange_.await(call.root);
    return copyUnlessSame(call.receive, exchange_.payloadOf(call.root, call.posted) + mine, call.bytes);
  }
  if (toRoot && !isRoot) return;
  if constexpr (isPrefix(c)) {
    for (int rank = 0; rank < rank_; ++rank) exchange_.await(rank);
    if (!shape.receive.isUsedOn(rank_, call.root)) return;
    return reduceAll(call, 0, shape.combines == Combines::lower ? rank_ : rank_ + 1);
  }
  exchange_.awaitAll();
  if constexpr (isReduction(c)) return reduceAll(call, mine, ranks_);
  if constexpr (shape.receive.holds == Holds::all) collectAll(call, mine);
}

template <Collective c>
void EagerPath::runShortAs(const EagerCall& call, std::uint64_t signature) {
  exchange_.begin(signature, call.posted, isRooted(c));
  runAs<c>(call);
}

// One for each collective: what follows from its shape takes longer to find than a short call to run.
void EagerPath::run(const EagerCall& call) {
  static constexpr auto ways = []<std::size_t... c>(std::index_sequence<c...>) {
    return std::array{+[](EagerPath& path, const EagerCall& one) { path.runAs<static_cast<Collective>(c)>(one); }...};
  }
  (std::make_index_sequence<collectiveCount + 1>());
  ways[static_cast<std::size_t>(call.collective)](*this, call);
}

void EagerPath::runShort(const EagerCall& call, std::uint64_t signature) {
  static constexpr auto ways = []<std::size_t... c>(std::index_sequence<c...>) {
    return std::array{&EagerPath::runShortAs<static_cast<Collective>(c)>...};
  }
  (std::make_index_sequence<collectiveCount + 1>());
  (this->*ways[static_cast<std::size_t>(call.collective)])(call, signature);
}

[[gnu::always_inline]] inline void EagerPath::fill(const EagerCall& call, std::size_t begin, std::size_t end) {
  std::byte* const payload = exchange_.payload(call.posted) + begin;
  if (!call.stream) [[likely]]
    return copyUnlessSame(payload, call.send + begin, end - begin);
  void* destination = payload;
  if (begin != end) copyBytes(&destination, 1, call.send + begin, end - begin, true);
}

void EagerPath::reduceAll(const EagerCall& call, std::size_t offset, int ranks) {
  if (call.count == 0) return;
  for (int rank = 0; rank < ranks; ++rank)
    sources_[static_cast<std::size_t>(rank)] =
        (rank == rank_ ? call.send : exchange_.payloadOf(rank, call.posted)) + offset;
  void* destination = call.receive;
  call.reduce({.destinations = &destination,
               .destinationCount = 1,
               .sources = sources_.data(),
               .sourceCount = ranks,
               .count = call.count,
               .divisor = call.divisor});
}

void EagerPath::collectAll(const EagerCall& call, std::size_t offset) {
  for (int rank = 0; rank < ranks_; ++rank) {
    // In place, an alltoall overwrites its own input, but for this rank's own block.
    const std::byte* from = rank == rank_ || call.posted == 0 ? call.send : exchange_.payloadOf(rank, call.posted);
    copyUnlessSame(call.receive + static_cast<std::size_t>(rank) * call.bytes, from + offset, call.bytes);
  }
}

}  // namespace tacc
