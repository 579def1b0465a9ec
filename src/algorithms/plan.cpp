#include "algorithms/plan.hpp"

namespace tacc {

std::vector<std::vector<int>> equalGroups(int ranks, const std::vector<int>& levels) {
  std::vector<std::vector<int>> groups;
  int size = 1;
  for (const int level : levels) {
    size *= level;
    groups.emplace_back(static_cast<std::size_t>(ranks / size), size);
  }
  return groups;
}

bool groupsFit(const PlanRequest& request) noexcept {
  const std::vector<int>* inside = nullptr;
  for (const std::vector<int>& level : request.groups) {
    std::int64_t covered = 0, coveredInside = 0;
    std::size_t next = 0;
    for (const int size : level) {
      if (size < 1) return false;
      covered += size;
      while (inside != nullptr && coveredInside < covered && next < inside->size()) coveredInside += (*inside)[next++];
      if (inside != nullptr && coveredInside != covered) return false;
    }
    if (covered != request.ranks) return false;
    inside = &level;
  }
  return true;
}

bool dimensionsFit(const PlanRequest& request) noexcept {
  std::int64_t places = 1;
  for (const int side : request.dimensions) {
    if (side < 1) return false;
    places *= side;
    if (places > request.ranks) return false;
  }
  return places == request.ranks;
}

int inputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept {
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return blocks;
    case Collective::broadcast:
      return rank == request.root ? blocks : 0;
    case Collective::allGather:
    case Collective::gather:
      return 1;
    case Collective::reduceScatter:
    case Collective::allToAll:
      return request.ranks;
    case Collective::scatter:
      return rank == request.root ? request.ranks : 0;
    default:
      return 0;
  }
}

int outputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept {
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::broadcast:
    case Collective::scan:
      return blocks;
    case Collective::exscan:
      return rank == 0 ? 0 : blocks;
    case Collective::reduce:
      return rank == request.root ? blocks : 0;
    case Collective::allGather:
    case Collective::allToAll:
      return request.ranks;
    case Collective::gather:
      return rank == request.root ? request.ranks : 0;
    case Collective::reduceScatter:
    case Collective::scatter:
      return 1;
    default:
      return 0;
  }
}

int inPlaceOutputOf(const PlanRequest& request, int rank, int inputBlock) noexcept {
  switch (request.collective) {
    case Collective::allReduce:
    case Collective::allToAll:
    case Collective::scan:
      return inputBlock;
    case Collective::exscan:
      return rank == 0 ? -1 : inputBlock;
    case Collective::broadcast:
    case Collective::reduce:
      return rank == request.root ? inputBlock : -1;
    case Collective::allGather:
      return rank;
    case Collective::gather:
      return rank == request.root ? rank : -1;
    case Collective::reduceScatter:
    case Collective::scatter:
      return inputBlock == rank ? 0 : -1;
    default:
      return -1;
  }
}

}  // namespace tacc
