// Recursive halving and doubling (Rabenseifner): a reduce-scatter by halves, then an allgather by doubling.
//
//   P = 2^L ranks, B = P blocks. In level l a rank exchanges with the partner at distance d_l: it keeps the half of its
//   range of blocks that belongs to its side, sends the other half, and adds what comes. After L levels it has one
//   complete block. The allgather undoes the levels in reverse order.
//
//   Two orders of distances:
//     far    d = P/2, ..., 2, 1: the largest exchange (N/2) is with the farthest rank. Rank v ends with block v.
//     near   d = 1, 2, ..., P/2: the largest exchange is with the nearest rank, and what crosses the longest and most
//            contended links is least. Ranges stay contiguous because rank v ends with block bitreverse(v).
//
//   P = 8, rank 5 = 101b; [a, b) is the range kept:
//     level   far: partner, keeps     near: partner, keeps
//       0        1      [4, 8)            4      [4, 8)
//       1        7      [4, 6)            7      [4, 6)
//       2        4      [5, 6)            1      [5, 6)
//
//   Any p through a fold (fold.hpp). Steps: 2 lg p; p no power of two: 2 floor(lg p) + 2. Bytes per rank: 2 (p-1)/p N;
//   with a fold those who act for two send 2 (P-1)/P N + N. The far order also does the reduce-scatter alone, for
//   powers of two: lg p steps, (p-1) blocks, p/2 blocks of scratch.
//
//   R. Rabenseifner: Optimization of collective reduction operations. ICCS 2004. For the near order on supernodes:
//   J. Fang, L. Li, H. Fu et al.: swCaffe: a parallel framework for deep learning on Sunway TaihuLight. CLUSTER 2018.
#include "algorithms/catalogue.hpp"
#include "algorithms/fold.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr std::string_view farName = "halving_doubling_far";
constexpr std::string_view nearName = "halving_doubling_near";

/// What rank v does in one level.
struct Level {
  int partner;  // its v
  int keep;     // first block of the half that is kept
  int send;     // first block of the half that is given away
  int half;     // blocks of either
};

std::vector<Level> levelsOf(int v, int size, bool farFirst) {
  std::vector<Level> levels;
  int first = 0;
  int distance = farFirst ? size / 2 : 1;
  for (int half = size / 2; half >= 1; half /= 2) {
    const bool upper = (v & distance) != 0;
    const int keep = upper ? first + half : first;
    levels.push_back({v ^ distance, keep, upper ? first : first + half, half});
    first = keep;
    distance = farFirst ? distance / 2 : distance * 2;
  }
  return levels;
}

Plan allReduce(const PlanRequest& request, std::string_view name, bool farFirst) {
  const int p = request.ranks;
  const Fold fold(p);
  const int blocks = fold.size();
  const int start = fold.needed() ? 2 : 0;
  PlanWriter writer(request, name, blocks);
  for (int r = 0; r < p; ++r) {
    if (fold.sitsOut(r)) continue;
    const std::vector<Level> levels = levelsOf(fold.virtualOf(r), blocks, farFirst);
    const int count = static_cast<int>(levels.size());
    bool inOutput = fold.actsForTwo(r);
    const auto partial = [&](int block) { return inOutput ? output(block) : input(block); };

    if (inOutput) writer.step(r, 1, 0, blocks, {peer(r - 1), input(0)}, {output(0)});
    for (int l = 0; l < count; ++l) {
      const Level& level = levels[l];
      const int partner = fold.rankOf(level.partner);
      const int round = start + 2 * l;
      writer.step(r, round, level.send, level.half, {partial(level.send)}, {peer(partner)});
      std::vector<Operand> destinations = {output(level.keep)};
      if (l == count - 1) destinations.push_back(peer(partner));  // the first exchange of the allgather
      writer.step(r, round + 1, level.keep, level.half, lowerFirst(r, partial(level.keep), partner, peer(partner)),
                  destinations);
      inOutput = true;
    }
    int round = start + 2 * count;
    for (int l = count - 1; l >= 0; --l, round += 2) {
      const Level& level = levels[l];
      writer.step(r, round, level.send, level.half, {peer(fold.rankOf(level.partner))}, {output(level.send)});
      if (l > 0) {
        const int all = levels[l - 1].keep;
        writer.step(r, round + 1, all, 2 * level.half, {output(all)}, {peer(fold.rankOf(levels[l - 1].partner))});
      }
    }
    if (fold.actsForTwo(r)) {
      writer.step(r - 1, 0, 0, blocks, {input(0)}, {peer(r)});
      writer.step(r, round - 1, 0, blocks, {output(0)}, {peer(r - 1)});
      writer.step(r - 1, round, 0, blocks, {peer(r)}, {output(0)});
    }
  }
  return writer.finish();
}

/// Powers of two, far first, so that rank r ends with block r. Partial results lie in scratch, which begins with the
/// first block that the rank keeps.
Plan reduceScatter(const PlanRequest& request) {
  const int p = request.ranks;
  PlanWriter writer(request, farName);
  if (p > 2) writer.needScratch(p / 2);
  for (int r = 0; r < p; ++r) {
    const std::vector<Level> levels = levelsOf(r, p, true);
    const int count = static_cast<int>(levels.size());
    const int base = levels[0].keep;
    for (int l = 0; l < count; ++l) {
      const Level& level = levels[l];
      const auto partial = [&](int block) { return l > 0 ? scratch(block - base) : input(block); };
      writer.step(r, 2 * l, 0, level.half, {partial(level.send)}, {peer(level.partner)});
      writer.step(r, 2 * l + 1, 0, level.half, lowerFirst(r, partial(level.keep), level.partner, peer(level.partner)),
                  {l == count - 1 ? output(0) : scratch(level.keep - base)});
    }
  }
  return writer.finish();
}

bool servesFar(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  return request.collective == Collective::allReduce ||
         (request.collective == Collective::reduceScatter && isPowerOfTwo(request.ranks));
}

bool servesNear(const PlanRequest& request) {
  return request.ranks >= 1 && request.collective == Collective::allReduce;
}

Plan makeFar(const PlanRequest& request) {
  if (request.ranks == 1) return writeCopy(request, farName);
  if (request.collective == Collective::reduceScatter) return reduceScatter(request);
  return allReduce(request, farName, true);
}

Plan makeNear(const PlanRequest& request) {
  return request.ranks == 1 ? writeCopy(request, nearName) : allReduce(request, nearName, false);
}

constexpr std::string_view paper = "Rabenseifner: Optimization of collective reduction operations, ICCS 2004";

}  // namespace

constinit const Algorithm halvingDoublingFarAlgorithm = {
    farName, "Reduce-scatter by halves and allgather by doubling, farthest partner first: 2 lg p steps, fewest bytes.",
    paper, servesFar, makeFar};

constinit const Algorithm halvingDoublingNearAlgorithm = {
    nearName, "The same, nearest partner first: the largest exchanges stay where links are short and uncontended.",
    paper, servesNear, makeNear};

}  // namespace tacc
