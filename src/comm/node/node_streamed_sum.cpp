// Streamed sums on one host: allreduces of pieces of a window that stays in the cache.
#include <algorithm>

#include "comm/node/node_communicator.hpp"
#include "core/types.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {
namespace {

/// Of a rank's window. Together with the same piece of two vectors that the program reads and writes it fits an L2
/// cache of 1 MiB, and the two exchanges of call lines that each piece costs are a hundredth of its time.
constexpr std::size_t windowBytes = 256 * 1024;

}  // namespace

void NodeCommunicator::runStreamed(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const std::size_t piece = std::min(call.count, windowBytes / size);
  std::byte* const window = window_.atLeast(piece * size);
  Call part{Collective::allReduce, window, window, 0, call.type, static_cast<taccRedOp_t>(call.streamed->code)};
  std::size_t first = 0;
  do {
    part.count = std::min(piece, call.count - first);
    if (part.count > 0) call.streamed->make(first, part.count, window);
    runCall(part);
    if (part.count > 0) call.streamed->take(first, part.count, window);
    first += part.count;
  } while (first < call.count);
}

}  // namespace tacc
