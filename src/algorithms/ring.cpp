// Ring: rank r sends to r+1 and receives from r-1 only, and all links are busy all the time.
//
//   The vector has B = p blocks (reduce-scatter and allgather: the p blocks of the buffers). Reduce-scatter: the
//   partial result of block b starts at rank b+1, goes round, takes up each rank's contribution as it passes (receive,
//   reduce and forward are one step), and is complete at rank b. Allgather: from there block b goes round once more.
//
//   In round k of the reduce-scatter rank r works on block r-1-k; in round p-1+j of the allgather on block r-j (mod p).
//   allreduce, p = 4, the block that each rank receives:
//     round      0      1   2   3      4   5   6
//     rank 0   send 3   2   1   0*     3   2   1     *: complete from here on
//     rank 1   send 0   3   2   1*     0   3   2
//     rank 2   send 1   0   3   2*     1   0   3
//     rank 3   send 2   1   0   3*     2   1   0
//
//   Steps: allreduce 2 (p-1), reduce-scatter and allgather p-1. Bytes per rank: allreduce 2 (p-1)/p N, reduce-scatter
//   and allgather (p-1) blocks: the bound. Partial results are never stored: no scratch.
//
//   P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. JPDC 69 (2009).
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

/// Rank r's part.
struct Ring {
  PlanWriter& writer;
  int p;
  int r = writer.rank();
  int next = wrap(r + 1, p);
  int previous = wrap(r - 1, p);

  /// Rounds 0 to p-1: the last step puts the complete block r into `destinations`.
  void reduceScatter(const std::vector<Operand>& destinations) const {
    writer.step(0, previous, 1, {input(previous)}, {peer(next)});
    for (int k = 1; k < p; ++k) {
      const int b = wrap(r - 1 - k, p);
      const bool isLast = k == p - 1;
      writer.step(k, b, 1, lowerFirst(previous, peer(previous), r, input(b)),
                  isLast ? destinations : std::vector<Operand>{peer(next)}, isLast ? Sum::complete : Sum::partial);
    }
  }

  /// The p-1 rounds after round `start`, in which rank r sent its own complete block.
  void allGather(int start) const {
    for (int j = 1; j < p; ++j) {
      const int b = wrap(r - j, p);
      std::vector<Operand> destinations = {output(b)};
      if (j < p - 1) destinations.push_back(peer(next));
      writer.step(start + j, b, 1, {peer(previous)}, destinations);
    }
  }
};

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::allGather, Collective::reduceScatter});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks;
  const Ring ring{writer, p};
  if (request.collective == Collective::allReduce) {
    writer.cutInto(p);
    ring.reduceScatter({output(ring.r), peer(ring.next)});
    ring.allGather(p - 1);
  } else if (request.collective == Collective::reduceScatter) {
    ring.reduceScatter({output(0)});
  } else {
    writer.step(0, 0, 1, {input(0)}, {output(ring.r), peer(ring.next)});
    ring.allGather(0);
  }
}

Exchanges exchanges(const PlanRequest& request) {
  const bool isAllReduce = request.collective == Collective::allReduce;
  Exchanges all{isAllReduce ? request.ranks : 1, {}};
  const auto round = [&](bool combines) {
    Exchange once = shiftBy(1, request.ranks, 1, combines);
    once.repeats = request.ranks - 1;
    once.flows = true;
    all.phases.emplace_back(std::move(once));
  };
  if (request.collective != Collective::allGather) round(true);
  if (request.collective != Collective::reduceScatter) round(false);
  return all;
}

}  // namespace

constinit const Algorithm ringAlgorithm = {
    "ring",
    "Blocks go round the ranks: fewest bytes, neighbours only, p-1 or 2(p-1) steps: for large data.",
    "Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009",
    serves,
    write,
    exchanges};

}  // namespace tacc
