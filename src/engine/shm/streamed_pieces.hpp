// Streamed sums on one host: allreduces of pieces of a window that stays in the cache.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/call.hpp"
#include "core/types.hpp"
#include "engine/streamed_sum.hpp"
#include "transports/shm/library_window.hpp"

namespace tacc {

/// Of a rank's window. Together with the same piece of two vectors that the program reads and writes it fits an L2
/// cache of 1 MiB, and the two exchanges of call lines that each piece costs are a hundredth of its time.
inline constexpr std::size_t streamedPieceBytes = 256 * 1024;

/// Runs a streamed sum piece by piece: each by `run(call)`, an allreduce in `window`. One without elements is one empty
/// piece.
template <class Run>
void runInPieces(const Call& call, LibraryWindow& window, const Run& run) {
  const std::size_t size = sizeOf(call.type);
  const std::size_t most = std::min(call.count, streamedPieceBytes / size);
  std::byte* const place = window.atLeast(most * size);
  Call piece{Collective::allReduce, place, place, 0, call.type, static_cast<taccRedOp_t>(call.streamed->code)};
  std::size_t first = 0;
  do {
    piece.count = std::min(most, call.count - first);
    if (piece.count > 0) call.streamed->make(first, piece.count, place);
    run(piece);
    if (piece.count > 0) call.streamed->take(first, piece.count, place);
    first += piece.count;
  } while (first < call.count);
}

}  // namespace tacc
