#include "transports/shm/area_pages.hpp"

#include "core/uncancelled.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

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
      isMissing_[static_cast<std::size_t>(part)] = true;
    else
      commitExtent(segment, NodeSegment::extentOf(segment.geometry(), rank, part), fd);
  }
}

void AreaPages::commit(AreaPart part) {
  constexpr int none = -1;
  const Uncancelled whole;
  commitExtent(segment_, NodeSegment::extentOf(segment_.geometry(), rank_, part), none);
  isMissing_[static_cast<std::size_t>(part)] = false;
}

}  // namespace tacc
