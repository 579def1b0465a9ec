// Recursive doubling: in step k every rank exchanges all that it has with the rank at distance 2^k.
//
//   allreduce: the partners' partial results are over neighbouring groups of 2^k ranks; both add them, the lower
//   group's first, so both get the same bits. After lg p steps everybody has everything.
//     p = 8, partners of rank 0: 1, 2, 4; of rank 5: 4, 7, 1.
//     after step 0 rank 5 holds 4..5, after step 1 4..7, after step 2 0..7.
//   When p is no power of two the ranks are folded first (fold.hpp), which costs up to two more steps.
//
//   allgather: the same exchange, with stacks of blocks that double. p must be a power of two.
//     p = 8, rank 5 sends: block 5 to 4, blocks 4..5 to 7, blocks 4..7 to 1.
//
//   scan: in step k rank r sends what it has, the sum over ranks r - 2^k + 1 to r, to rank r + 2^k, which puts it
//   before its own. exscan: the same, and in the end each rank sends its sum to the next.
//
//   Steps, the longest chain of messages: lg p; scan floor(lg p), exscan ceil(lg p); allreduce with a fold
//   floor(lg p) + 1, and + 2 if more than half of the ranks that take part act for two. Bytes per rank: allreduce
//   floor(lg p) N (and N more for those who act for two), allgather p-1 blocks.
//
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. IJHPCA (2005).
#include "algorithms/catalogue.hpp"
#include "algorithms/fold.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

void allReduce(PlanWriter& writer, int p) {
  const int r = writer.rank();
  const Fold fold(p);
  const int start = fold.needed() ? 1 : 0;
  int levels = 0;
  while ((1 << levels) < fold.size()) ++levels;
  if (fold.sitsOut(r)) {
    writer.step(0, 0, 1, {input(0)}, {peer(r + 1)});
    return writer.step(start + levels + 1, 0, 1, {peer(r + 1)}, {output(0)});
  }
  const int v = fold.virtualOf(r);
  const auto partner = [&](int level) { return fold.rankOf(v ^ (1 << level)); };
  Operand partial = input(0);
  if (fold.actsForTwo(r)) {
    writer.step(start, 0, 1, {peer(r - 1), input(0)}, {output(0), peer(partner(0))});
    partial = output(0);
  } else {
    writer.step(start, 0, 1, {input(0)}, {peer(partner(0))});
  }
  for (int k = 0; k < levels; ++k) {
    const bool isLast = k + 1 == levels;
    std::vector<Operand> destinations = {output(0)};
    if (!isLast) {
      destinations.push_back(peer(partner(k + 1)));
    } else if (fold.actsForTwo(r)) {
      destinations.push_back(peer(r - 1));
    }
    writer.step(start + 1 + k, 0, 1, lowerFirst(r, partial, partner(k), peer(partner(k))), destinations,
                isLast ? Sum::complete : Sum::partial);
    partial = output(0);
  }
}

/// Stored blocks are sent in the round after the one in which the last of them came.
void allGather(PlanWriter& writer, int p) {
  const int r = writer.rank();
  writer.step(0, 0, 1, {input(0)}, {output(r), peer(r ^ 1)});
  int round = 1;
  for (int distance = 1; distance < p; distance *= 2, round += 2) {
    const int partner = r ^ distance;
    const int theirs = partner & ~(distance - 1);
    writer.step(round, 0, distance, {peer(partner)}, {output(theirs)});
    if (2 * distance < p) {
      const int held = r & ~(2 * distance - 1);
      writer.step(round + 1, 0, 2 * distance, {output(held)}, {peer(r ^ (2 * distance))});
    }
  }
}

/// An exclusive scan keeps the sum in scratch, as the input may be where its result goes to.
void prefix(PlanWriter& writer, int p, bool isInclusive) {
  const int r = writer.rank();
  const Operand sum = isInclusive ? output(0) : scratch(0);
  if (!isInclusive) writer.needScratch(1);
  const auto withPeer = [&](std::vector<Operand> destinations, int distance) {
    if (r + distance < p) destinations.push_back(peer(r + distance));
    return destinations;
  };
  writer.step(0, 0, 1, {input(0)}, withPeer({sum}, 1));
  int round = 1;
  for (int distance = 1; distance < p; distance *= 2, ++round) {
    const bool goesOn = 2 * distance < p;
    const int next = goesOn ? 2 * distance : p;
    if (r >= distance)
      writer.step(round, 0, 1, {peer(r - distance), sum}, withPeer({sum}, next),
                  r == p - 1 && !goesOn ? Sum::complete : Sum::partial);
    else if (r + next < p)
      writer.step(round, 0, 1, {sum}, {peer(r + next)});
  }
  if (isInclusive) return;
  if (r + 1 < p) writer.step(round, 0, 1, {sum}, {peer(r + 1)});
  if (r > 0) writer.step(round + 1, 0, 1, {peer(r - 1)}, {output(0)});
}

bool serves(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  return request.collective == Collective::allReduce || isPrefix(request.collective) ||
         (request.collective == Collective::allGather && isPowerOfTwo(request.ranks));
}

void write(const PlanRequest& request, PlanWriter& writer) {
  if (request.collective == Collective::allReduce) return allReduce(writer, request.ranks);
  if (isPrefix(request.collective)) return prefix(writer, request.ranks, request.collective == Collective::scan);
  allGather(writer, request.ranks);
}

Exchanges exchanges(const PlanRequest& request) {
  Exchanges all;
  if (request.collective == Collective::allGather) {
    for (int distance = 1; distance < request.ranks; distance *= 2) {
      Exchange level;
      level.to = [distance](int r) { return r ^ distance; };
      level.blocks = distance;
      all.phases.emplace_back(std::move(level));
    }
    return all;
  }
  if (isPrefix(request.collective)) {
    const int p = request.ranks;
    const auto shift = [&](int distance, bool combines) {
      Exchange level;
      level.to = [=](int r) { return r + distance < p ? r + distance : r; };
      level.combines = combines;
      all.phases.emplace_back(std::move(level));
    };
    for (int distance = 1; distance < p; distance *= 2) shift(distance, true);
    if (request.collective == Collective::exscan) shift(1, false);
    return all;
  }
  const Fold fold(request.ranks);
  if (fold.needed()) all.phases.emplace_back(fold.before(1));
  for (int distance = 1; distance < fold.size(); distance *= 2) {
    Exchange level;
    level.to = [=](int r) { return fold.sitsOut(r) ? r : fold.rankOf(fold.virtualOf(r) ^ distance); };
    level.combines = true;
    all.phases.emplace_back(std::move(level));
  }
  if (fold.needed()) all.phases.emplace_back(fold.after(1));
  return all;
}

}  // namespace

constinit const Algorithm recursiveDoublingAlgorithm = {
    "recursive_doubling",
    "Exchange all with the rank at distance 1, 2, 4, ...: lg p steps: for small data across a network.",
    "Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005",
    serves,
    write,
    exchanges};

}  // namespace tacc
