// The collectives, and what all layers know of each: its name, and what kind it is.
#pragma once

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
inline constexpr int collectiveCount = 10;                // those with plans
std::string_view nameOf(Collective collective) noexcept;  // "allreduce", "broadcast", ..., as in tacc_bench
/// The collective with a plan that nameOf() calls so.
std::optional<Collective> collectiveNamed(std::string_view name) noexcept;

/// scan, exscan: rank r gets what ranks 0 to r, or to r - 1, contribute, combined in this order.
constexpr bool isPrefix(Collective c) noexcept { return c == Collective::scan || c == Collective::exscan; }

/// How its buffers are cut into blocks (algorithms/plan.hpp): one vector, or a stack of blocks.
enum class Partition : std::uint8_t { split, stack };
constexpr Partition partitionOf(Collective c) noexcept {
  return c == Collective::allReduce || c == Collective::broadcast || c == Collective::reduce || isPrefix(c)
             ? Partition::split
             : Partition::stack;
}
/// allreduce, reduce, reduce-scatter, scan, exscan.
constexpr bool isReduction(Collective c) noexcept {
  return c == Collective::allReduce || c == Collective::reduce || c == Collective::reduceScatter || isPrefix(c);
}
/// broadcast, reduce, gather, scatter.
constexpr bool isRooted(Collective c) noexcept {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::gather || c == Collective::scatter;
}

}  // namespace tacc
