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

bool narrowFit(const PlanRequest& request) noexcept {
  int before = -1;
  for (const int rank : request.narrow) {
    if (rank <= before || rank >= request.ranks) return false;
    before = rank;
  }
  return true;
}

namespace {

int blocksOf(const BufferShape& buffer, const PlanRequest& request, int blocks, int rank) noexcept {
  const int whole = buffer.blocksOn(rank, request.ranks, request.root);
  return partitionOf(request.collective) == Partition::split ? whole * blocks : whole;
}

}  // namespace

int inputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept {
  return blocksOf(shapeOf(request.collective).send, request, blocks, rank);
}

int outputBlocksOf(const PlanRequest& request, int blocks, int rank) noexcept {
  return blocksOf(shapeOf(request.collective).receive, request, blocks, rank);
}

int inPlaceOutputOf(const PlanRequest& request, int rank, int inputBlock) noexcept {
  const auto& [name, combines, send, receive] = shapeOf(request.collective);
  if (!send.isUsedOn(rank, request.root) || !receive.isUsedOn(rank, request.root)) return -1;
  if (isGathering(request.collective)) return rank;
  if (isScattering(request.collective)) return inputBlock == rank ? 0 : -1;
  return inputBlock;
}

}  // namespace tacc
