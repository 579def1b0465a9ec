// Recursive halving and doubling (Rabenseifner): a reduce-scatter by halves, then an allgather by doubling, between
// places whose numbers differ in one bit (butterfly.hpp has how, steps and bytes).
//
//   Two orders of distances:
//     far    d = P/2, ..., 2, 1: the largest exchange (N/2) is with the farthest rank. Rank v ends with block v.
//     near   d = 1, 2, ..., P/2: the largest exchange is with the nearest rank, and what crosses the longest and most
//            contended links is least. Ranges stay contiguous because rank v ends with block bitreverse(v): the blocks
//            are remapped. In an allreduce that costs nothing; in a reduce-scatter and an allgather, where rank r must
//            have block r, it is a copy of the data in memory.
//
//   P = 8, rank 5 = 101b; [a, b) is the range kept:
//     level   far: partner, keeps     near: partner, keeps
//       0        1      [4, 8)            4      [4, 8)
//       1        7      [4, 6)            7      [4, 6)
//       2        4      [5, 6)            1      [5, 6)
//
//   The allgather of the far order is that of recursive_doubling.
//
//   R. Rabenseifner: Optimization of collective reduction operations. ICCS 2004. For the near order on supernodes:
//   J. Fang, L. Li, H. Fu et al.: swCaffe: a parallel framework for deep learning on Sunway TaihuLight. CLUSTER 2018.
#include "algorithms/butterfly.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

bool servesFar(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  return request.collective == Collective::allReduce ||
         (request.collective == Collective::reduceScatter && isPowerOfTwo(request.ranks));
}

bool servesNear(const PlanRequest& request) {
  return servesFar(request) || (request.collective == Collective::allGather && isPowerOfTwo(request.ranks));
}

int farPartner(int place, int level, int size, const std::vector<int>&) { return place ^ (size >> (level + 1)); }
int nearPartner(int place, int level, int, const std::vector<int>&) { return place ^ (1 << level); }

void writeFar(const PlanRequest& request, PlanWriter& writer) { writeButterfly(request, farPartner, writer); }
void writeNear(const PlanRequest& request, PlanWriter& writer) { writeButterfly(request, nearPartner, writer); }

Exchanges exchangesFar(const PlanRequest& request) { return exchangesOfButterfly(request, farPartner); }
Exchanges exchangesNear(const PlanRequest& request) { return exchangesOfButterfly(request, nearPartner); }

constexpr std::string_view paper = "Rabenseifner: Optimization of collective reduction operations, ICCS 2004";

}  // namespace

constinit const Algorithm halvingDoublingFarAlgorithm = {
    "halving_doubling_far",
    "Reduce-scatter by halves and allgather by doubling, farthest partner first: 2 lg p steps, fewest bytes.",
    paper,
    servesFar,
    writeFar,
    exchangesFar};

constinit const Algorithm halvingDoublingNearAlgorithm = {
    "halving_doubling_near",
    "The same, nearest partner first: the largest exchanges stay where links are short and uncontended.",
    paper,
    servesNear,
    writeNear,
    exchangesNear};

}  // namespace tacc
