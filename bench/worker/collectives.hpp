#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tacc::bench {

enum class Kind {
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
  allGatherV,
  reduceScatterV,
  gatherV,
  scatterV,
  allToAllV,
  sendRecv,
  barrier
};

/// The counts of one call, in elements.
struct Shape {
  size_t count = 0;      ///< the call's count argument
  size_t sendCount = 0;  ///< extent of the largest send buffer
  size_t recvCount = 0;  ///< extent of the largest receive buffer

  /// The nccl-tests "size" of the call.
  size_t largest() const { return sendCount > recvCount ? sendCount : recvCount; }
};

/// `count` elements of a receive buffer from `begin` on hold the values of `source` (a rank, or a reduction of Pattern)
/// from `index` on.
struct Segment {
  size_t begin;
  size_t count;
  int source;
  size_t index;
};

/// Where the send and receive buffers start in the one buffer of an in-place call, in elements.
struct InPlace {
  size_t send;
  size_t recv;
};

/// All that the bench knows about a collective. Adding one is adding a line to the table in collectives.cpp, its call
/// to each contestant, and nothing else.
struct Collective {
  Kind kind;
  const char* name;
  bool reduces;
  bool rooted;
  bool hasInPlace;
  /// A call's `count` gives this shape.
  Shape (*shape)(size_t count, int ranks);
  /// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it.
  double (*busFactor)(int ranks);
  std::vector<Segment> (*expected)(const Shape& shape, int rank, int ranks, int root);
  InPlace (*inPlace)(const Shape& shape, int rank);
  /// Blocks have drawn lengths, see drawnBlocks(); the call's count is their mean.
  bool isUnequal = false;
  /// Reduces over the ranks before a rank, of which there is no average.
  bool isPrefix = false;

  /// The call of which the larger buffer has `elements` elements, or somewhat fewer: like nccl-tests, the part of each
  /// rank is rounded down to 16 bytes, but here not below 16 bytes, nor below one element.
  Shape shapeOfTotal(size_t elements, size_t elementSize, int ranks) const;
};

/// Blocks of unequal lengths, one behind the other. They are drawn, the same in every run: from nothing to twice the
/// mean, in pairs that together have two means.
struct DrawnBlocks {
  std::vector<size_t> counts, places;
};
/// One for each rank: of what a rank sends to all in an alltoall, or receives from all, which is the same; of the other
/// collectives of all ranks (`rank` 0).
DrawnBlocks drawnBlocks(size_t mean, int rank, int ranks);

std::span<const Collective> allCollectives();

/// Accepts "allreduce", also written all_reduce, all-reduce or AllReduce. nullptr: there is none of that name.
const Collective* findCollective(std::string_view name);

}  // namespace tacc::bench
