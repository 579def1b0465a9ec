#include "worker/collectives.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>

#include "support/sizes.hpp"
#include "worker/pattern.hpp"

namespace tacc::bench {
namespace {

size_t size(int n) { return static_cast<size_t>(n); }

Shape equalShape(size_t count, int) { return {count, count, count}; }
Shape gatherShape(size_t count, int ranks) { return {count, count, count * size(ranks)}; }
Shape scatterShape(size_t count, int ranks) { return {count, count * size(ranks), count}; }
Shape exchangeShape(size_t count, int ranks) { return {count, count * size(ranks), count * size(ranks)}; }

Shape noShape(size_t, int) { return {}; }

/// The largest buffers of any rank: one block, and all of them.
Shape unequalGatherShape(size_t count, int ranks) {
  return {count, count * size(std::min(ranks, 2)), count * size(ranks)};
}
Shape unequalScatterShape(size_t count, int ranks) {
  return {count, count * size(ranks), count * size(std::min(ranks, 2))};
}

double allReduceFactor(int ranks) { return 2.0 * (ranks - 1) / ranks; }
double partsFactor(int ranks) { return 1.0 * (ranks - 1) / ranks; }
double wholeFactor(int) { return 1.0; }
double noFactor(int) { return 0.0; }

using Segments = std::vector<Segment>;

Segments reducedEverywhere(const Shape& s, int, int, int) { return {{0, s.count, Pattern::reduced, 0}}; }
Segments reducedAtRoot(const Shape& s, int rank, int, int root) {
  return rank == root ? Segments{{0, s.count, Pattern::reduced, 0}} : Segments{};
}
Segments reducedUpToSelf(const Shape& s, int, int, int) { return {{0, s.count, Pattern::upToSelf, 0}}; }
Segments reducedBeforeSelf(const Shape& s, int rank, int, int) {
  return rank > 0 ? Segments{{0, s.count, Pattern::beforeSelf, 0}} : Segments{};
}
Segments ownPartReduced(const Shape& s, int rank, int, int) {
  return {{0, s.count, Pattern::reduced, size(rank) * s.count}};
}
Segments rootsValues(const Shape& s, int, int, int root) { return {{0, s.count, root, 0}}; }
Segments rootsPart(const Shape& s, int rank, int, int root) { return {{0, s.count, root, size(rank) * s.count}}; }
Segments everyRanksValues(const Shape& s, int, int ranks, int) {
  Segments segments;
  for (int r = 0; r < ranks; ++r) segments.push_back({size(r) * s.count, s.count, r, 0});
  return segments;
}
Segments everyRanksValuesAtRoot(const Shape& s, int rank, int ranks, int root) {
  return rank == root ? everyRanksValues(s, rank, ranks, root) : Segments{};
}
Segments everyRanksPart(const Shape& s, int rank, int ranks, int) {
  Segments segments;
  for (int r = 0; r < ranks; ++r) segments.push_back({size(r) * s.count, s.count, r, size(rank) * s.count});
  return segments;
}
Segments everyRanksBlock(const Shape& s, int, int ranks, int) {
  const DrawnBlocks blocks = drawnBlocks(s.count, 0, ranks);
  Segments segments;
  for (int r = 0; r < ranks; ++r) segments.push_back({blocks.places[size(r)], blocks.counts[size(r)], r, 0});
  return segments;
}
Segments everyRanksBlockAtRoot(const Shape& s, int rank, int ranks, int root) {
  return rank == root ? everyRanksBlock(s, rank, ranks, root) : Segments{};
}
Segments ownBlock(const Shape& s, int rank, int ranks, int source) {
  const DrawnBlocks blocks = drawnBlocks(s.count, 0, ranks);
  return {{0, blocks.counts[size(rank)], source, blocks.places[size(rank)]}};
}
Segments ownBlockReduced(const Shape& s, int rank, int ranks, int) {
  return ownBlock(s, rank, ranks, Pattern::reduced);
}
Segments exchangedBlocks(const Shape& s, int rank, int ranks, int) {
  const DrawnBlocks blocks = drawnBlocks(s.count, rank, ranks);
  Segments segments;
  for (int r = 0; r < ranks; ++r)
    segments.push_back(
        {blocks.places[size(r)], blocks.counts[size(r)], r, drawnBlocks(s.count, r, ranks).places[size(rank)]});
  return segments;
}
Segments nothing(const Shape&, int, int, int) { return {}; }
Segments previousRanksValues(const Shape& s, int rank, int ranks, int) {
  return {{0, s.count, (rank + ranks - 1) % ranks, 0}};
}

InPlace sameBuffer(const Shape&, int) { return {0, 0}; }
InPlace sendOwnPart(const Shape& s, int rank) { return {size(rank) * s.count, 0}; }
InPlace receiveOwnPart(const Shape& s, int rank) { return {0, size(rank) * s.count}; }

constexpr std::array collectives = {
    Collective{Kind::allReduce, "allreduce", true, false, true, equalShape, allReduceFactor, reducedEverywhere,
               sameBuffer},
    Collective{Kind::broadcast, "broadcast", false, true, true, equalShape, wholeFactor, rootsValues, sameBuffer},
    Collective{Kind::reduce, "reduce", true, true, true, equalShape, wholeFactor, reducedAtRoot, sameBuffer},
    Collective{Kind::allGather, "allgather", false, false, true, gatherShape, partsFactor, everyRanksValues,
               sendOwnPart},
    Collective{Kind::reduceScatter, "reducescatter", true, false, true, scatterShape, partsFactor, ownPartReduced,
               receiveOwnPart},
    Collective{Kind::allToAll, "alltoall", false, false, true, exchangeShape, partsFactor, everyRanksPart, sameBuffer},
    Collective{Kind::gather, "gather", false, true, true, gatherShape, partsFactor, everyRanksValuesAtRoot,
               sendOwnPart},
    Collective{Kind::scatter, "scatter", false, true, true, scatterShape, partsFactor, rootsPart, receiveOwnPart},
    Collective{Kind::scan, "scan", true, false, true, equalShape, wholeFactor, reducedUpToSelf, sameBuffer, false,
               true},
    Collective{Kind::exscan, "exscan", true, false, true, equalShape, wholeFactor, reducedBeforeSelf, sameBuffer, false,
               true},
    Collective{Kind::allGatherV, "allgatherv", false, false, false, unequalGatherShape, partsFactor, everyRanksBlock,
               sameBuffer, true},
    Collective{Kind::reduceScatterV, "reducescatterv", true, false, false, unequalScatterShape, partsFactor,
               ownBlockReduced, sameBuffer, true},
    Collective{Kind::gatherV, "gatherv", false, true, false, unequalGatherShape, partsFactor, everyRanksBlockAtRoot,
               sameBuffer, true},
    Collective{Kind::scatterV, "scatterv", false, true, false, unequalScatterShape, partsFactor, ownBlock, sameBuffer,
               true},
    Collective{Kind::allToAllV, "alltoallv", false, false, false, exchangeShape, partsFactor, exchangedBlocks,
               sameBuffer, true},
    Collective{Kind::sendRecv, "sendrecv", false, false, false, equalShape, wholeFactor, previousRanksValues,
               sameBuffer},
    Collective{Kind::barrier, "barrier", false, false, false, noShape, noFactor, nothing, sameBuffer},
};

}  // namespace

Shape Collective::shapeOfTotal(size_t elements, size_t elementSize, int ranks) const {
  if (shape(1, ranks).largest() == 1) return shape(elements, ranks);
  return shape(tools::partOf(elements, elementSize, ranks), ranks);
}

DrawnBlocks drawnBlocks(size_t mean, int rank, int ranks) {
  DrawnBlocks blocks;
  size_t place = 0;
  for (int other = 0; other < ranks; ++other) {
    // What two ranks give each other is of one length.
    const int number = (rank + other) % ranks;
    const bool isAlone = number == ranks - 1 && ranks % 2 == 1;
    const auto drawn = static_cast<uint32_t>(number / 2 + 1) * 0x9e3779b1U;
    const size_t difference = isAlone ? 0 : (drawn >> 8) % (mean + 1);
    blocks.counts.push_back(number % 2 == 0 ? mean + difference : mean - difference);
    blocks.places.push_back(place);
    place += blocks.counts.back();
  }
  return blocks;
}

std::span<const Collective> allCollectives() { return collectives; }

const Collective* findCollective(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Collective& collective : collectives)
    if (plain == collective.name) return &collective;
  return nullptr;
}

}  // namespace tacc::bench
