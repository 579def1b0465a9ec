// The collectives, and what all layers know of each: its name, what it combines, and what its buffers hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tacc {

enum class Collective : std::uint8_t {
  allReduce,
  broadcast,
  reduce,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  scan,
  exscan,
  barrier,  // has no plan: the exchange of signatures that opens every call is all of it
};
inline constexpr int collectiveCount = 10;  // those with plans

/// What the ranks' contributions become.
enum class Combines : std::uint8_t {
  nothing,
  all,      // each result is of all ranks
  lower,    // of the ranks before its own
  upToOwn,  // of these and its own
};
/// What a buffer holds, in the `count` of the call.
enum class Holds : std::uint8_t {
  nothing,
  one,  // count elements
  all,  // count elements for every rank, in the order of ranks
};
enum class UsedBy : std::uint8_t { everybody, root, allButFirst };

struct BufferShape {
  Holds holds;
  UsedBy usedBy;
  constexpr bool isUsedOn(int rank, int root) const noexcept {
    return holds != Holds::nothing &&
           (usedBy == UsedBy::everybody || (usedBy == UsedBy::root ? rank == root : rank > 0));
  }
  /// Blocks of `count` elements on a rank.
  constexpr int blocksOn(int rank, int ranks, int root) const noexcept {
    return !isUsedOn(rank, root) ? 0 : holds == Holds::all ? ranks : 1;
  }
};

/// What follows for a call. In place, a buffer that holds one block is the block of its rank in one that holds all;
/// buffers that hold the same are the same.
struct CollectiveShape {
  std::string_view name;  // as in tacc_bench
  Combines combines;
  BufferShape send, receive;
};

/// By Collective.
inline constexpr std::array<CollectiveShape, collectiveCount + 1> collectiveShapes = {{
    {"allreduce", Combines::all, {Holds::one, UsedBy::everybody}, {Holds::one, UsedBy::everybody}},
    {"broadcast", Combines::nothing, {Holds::one, UsedBy::root}, {Holds::one, UsedBy::everybody}},
    {"reduce", Combines::all, {Holds::one, UsedBy::everybody}, {Holds::one, UsedBy::root}},
    {"allgather", Combines::nothing, {Holds::one, UsedBy::everybody}, {Holds::all, UsedBy::everybody}},
    {"reducescatter", Combines::all, {Holds::all, UsedBy::everybody}, {Holds::one, UsedBy::everybody}},
    {"alltoall", Combines::nothing, {Holds::all, UsedBy::everybody}, {Holds::all, UsedBy::everybody}},
    {"gather", Combines::nothing, {Holds::one, UsedBy::everybody}, {Holds::all, UsedBy::root}},
    {"scatter", Combines::nothing, {Holds::all, UsedBy::root}, {Holds::one, UsedBy::everybody}},
    {"scan", Combines::upToOwn, {Holds::one, UsedBy::everybody}, {Holds::one, UsedBy::everybody}},
    {"exscan", Combines::lower, {Holds::one, UsedBy::everybody}, {Holds::one, UsedBy::allButFirst}},
    {"barrier", Combines::nothing, {Holds::nothing, UsedBy::everybody}, {Holds::nothing, UsedBy::everybody}},
}};
constexpr const CollectiveShape& shapeOf(Collective c) noexcept {
  return collectiveShapes[static_cast<std::size_t>(c)];
}

constexpr std::string_view nameOf(Collective c) noexcept { return shapeOf(c).name; }
/// The collective with a plan that nameOf() calls so.
std::optional<Collective> collectiveNamed(std::string_view name) noexcept;
/// The same; throws Error (taccInvalidArgument), which lists those that there are.
Collective requireCollective(std::string_view name);

/// scan, exscan: rank r gets what ranks 0 to r, or to r - 1, contribute, combined in this order.
constexpr bool isPrefix(Collective c) noexcept {
  return shapeOf(c).combines == Combines::lower || shapeOf(c).combines == Combines::upToOwn;
}

/// How its buffers are cut into blocks (algorithms/plan.hpp): one vector, or a stack of blocks.
enum class Partition : std::uint8_t { split, stack };
constexpr Partition partitionOf(Collective c) noexcept {
  return shapeOf(c).send.holds == Holds::one && shapeOf(c).receive.holds == Holds::one ? Partition::split
                                                                                       : Partition::stack;
}
/// allreduce, reduce, reduce-scatter, scan, exscan.
constexpr bool isReduction(Collective c) noexcept { return shapeOf(c).combines != Combines::nothing; }
/// broadcast, reduce, gather, scatter.
constexpr bool isRooted(Collective c) noexcept {
  return shapeOf(c).send.usedBy == UsedBy::root || shapeOf(c).receive.usedBy == UsedBy::root;
}
/// allgather, gather: results are put together from one block of every rank.
constexpr bool isGathering(Collective c) noexcept {
  return shapeOf(c).send.holds == Holds::one && shapeOf(c).receive.holds == Holds::all;
}
/// reduce-scatter, scatter: a rank gets its block of what others hold for all.
constexpr bool isScattering(Collective c) noexcept {
  return shapeOf(c).send.holds == Holds::all && shapeOf(c).receive.holds == Holds::one;
}

}  // namespace tacc
