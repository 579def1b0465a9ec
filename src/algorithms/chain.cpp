// Pipelined chain: the blocks follow one another along a line of ranks.
//
//   v = (rank - root) mod p. broadcast: v receives block b from v-1 and passes it on to v+1 in the same step, while
//   block b+1 is behind it. reduce: the other way round, each rank adding its own. B = 8 blocks, whatever p is: the
//   plan is cut into chunks besides, and chunks follow one another in the same way.
//
//   broadcast, p = 4, the block that arrives:
//     round   0   1   2   3   4  ...
//     v = 0   0   1   2   3   4         (sends it)
//     v = 1       0   1   2   3
//     v = 2           0   1   2
//     v = 3               0   1
//
//   Steps: p-1 until the first block is at the end, p-2+B until the last one is. Bytes: every rank but the last
//   sends N, every rank but the first receives N: the bound. reduce: the same, and nothing is stored.
//
//   P. Sanders et al.: Sequential and Parallel Algorithms and Data Structures: The Basic Toolbox, section 13.1.1.
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr int blocks = 8;

void broadcast(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks, rank = writer.rank();
  const int v = wrap(rank - request.root, p);
  const Operand previous = peer(wrap(rank - 1, p));
  const Operand next = peer(wrap(rank + 1, p));
  for (int b = 0; b < blocks; ++b) {
    std::vector<Operand> destinations = {output(b)};
    if (v < p - 1) destinations.push_back(next);
    writer.step(v + b, b, 1, {v == 0 ? input(b) : previous}, destinations);
  }
}

void reduce(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks, rank = writer.rank();
  const int v = wrap(rank - request.root, p);
  const Operand previous = peer(wrap(rank - 1, p));
  const int next = wrap(rank + 1, p);
  for (int b = 0; b < blocks; ++b) {
    const std::vector<Operand> sources =
        v == p - 1 ? std::vector<Operand>{input(b)} : lowerFirst(rank, input(b), next, peer(next));
    writer.step(p - 1 - v + b, b, 1, sources, {v == 0 ? output(b) : previous}, v == 0 ? Sum::complete : Sum::partial);
  }
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 && isOneOf(request.collective, {Collective::broadcast, Collective::reduce});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  writer.cutInto(blocks);
  if (request.collective == Collective::broadcast) return broadcast(request, writer);
  reduce(request, writer);
}

Exchanges exchanges(const PlanRequest& request) {
  std::vector<int> parents;
  for (int v = 0; v < request.ranks; ++v) parents.push_back(v - 1);
  TreeExchange line;
  line.trees = {{std::make_shared<const Tree>(parents, request.root)}};
  line.isDown = request.collective == Collective::broadcast;
  line.combines = !line.isDown;
  line.messages = blocks;
  return {blocks, {line}};
}

}  // namespace

constinit const Algorithm chainAlgorithm = {
    "chain",
    "Blocks follow one another along a line of ranks: fewest bytes: broadcast and reduce of large data.",
    "Sanders et al.: Sequential and Parallel Algorithms and Data Structures, section 13.1.1",
    serves,
    write,
    exchanges};

}  // namespace tacc
