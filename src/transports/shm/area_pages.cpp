#include "transports/shm/area_pages.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/uncancelled.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

constexpr std::size_t leastCommitted = std::size_t{64} << 10;

void commitExtent(const NodeSegment& segment, Extent extent, int fd) {
  const std::size_t begin = extent.begin / pageBytes * pageBytes;
  const std::size_t end = (extent.end + pageBytes - 1) / pageBytes * pageBytes;
  reservePages(fd, segment.base() + begin, begin, end - begin, segmentPurpose);
}

}  // namespace

AreaPages::AreaPages(const NodeSegment& segment, int rank, int fd) : segment_(segment), rank_(rank) {
  if (rank == 0) {
    commitExtent(segment, {0, pageBytes}, fd);
    if (const Extent board = NodeSegment::boardExtent(segment.geometry()); board.begin < board.end)
      commitExtent(segment, board, fd);
  }
  for (const AreaPart part : {AreaPart::lines, AreaPart::windows})
    commitExtent(segment, NodeSegment::extentOf(segment.geometry(), rank, part), fd);
  for (const AreaPart part : {AreaPart::eager, AreaPart::arena, AreaPart::pairs}) {
    if (commitsByAddress())
      there_[static_cast<std::size_t>(part)] = 0;
    else
      commitExtent(segment, NodeSegment::extentOf(segment.geometry(), rank, part), fd);
  }
}

void AreaPages::commit(AreaPart part, std::size_t bytes) {
  constexpr int none = -1;
  const Uncancelled untilDone;
  std::size_t& there = there_[static_cast<std::size_t>(part)];
  const Extent extent = NodeSegment::extentOf(segment_.geometry(), rank_, part);
  const std::size_t all = extent.end - extent.begin;
  // Of calls that grow a little each time not every one is to ask the kernel.
  const std::size_t wanted = bytes >= all ? all : std::min(all, std::max({bytes, 2 * there, leastCommitted}));
  const auto commitUpTo = [&](std::size_t end) {
    commitExtent(segment_, {extent.begin + std::min(there, end), extent.begin + end}, none);
    there = end == all ? AreaPages::whole : end;
  };
  try {
    commitUpTo(wanted);
  } catch (const Error&) {
    if (bytes >= wanted) throw;
    commitUpTo(bytes);  // what is needed may be there
  }
}

}  // namespace tacc
