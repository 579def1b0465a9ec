#include "selection/network_selection.hpp"

#include <algorithm>

#include "selection/selection.hpp"

namespace tacc {
namespace {

// A message between hosts costs some tens of microseconds before its first byte arrives, in which a few kilobytes could
// have been sent. Below that much a step, fewer steps win; above it, fewer bytes, and neighbours only: a ring in the
// order of the hosts loads every link once, also links that many hosts share.
constexpr std::size_t latencyBytes = 2048;
constexpr std::size_t chunkPerBlock = 128 * 1024;  // long enough that latency is hidden, short enough to overlap
constexpr std::size_t chunkOfVector = 256 * 1024;  // where blocks follow one another through the same ranks

std::string_view preferredName(const NetworkShape& shape) {
  const auto ranks = static_cast<std::size_t>(shape.request.ranks);
  switch (shape.request.collective) {
    case Collective::allReduce:
      return shape.bytes < latencyBytes * ranks ? "recursive_doubling" : "ring";
    case Collective::broadcast:
    case Collective::reduce:
      return shape.bytes < latencyBytes * 8 ? "binomial" : "chain";
    case Collective::allGather:
    case Collective::reduceScatter:
      return shape.bytes < latencyBytes ? "circulant" : "ring";
    default:
      return "oneshot";
  }
}

}  // namespace

const Algorithm& selectNetworkAlgorithm(const NetworkShape& shape) {
  return selectAlgorithm({shape.request, shape.bytes, false, shape.forced.empty() ? preferredName(shape) : shape.forced},
                         {});
}

std::size_t networkChunk(const NetworkShape& shape) {
  if (partitionOf(shape.request.collective) == Partition::stack) return chunkPerBlock;
  if (shape.request.collective == Collective::allReduce)
    return chunkPerBlock * static_cast<std::size_t>(shape.request.ranks);
  return chunkOfVector;
}

}  // namespace tacc
