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
//   scan, exscan: v = rank; v receives block b of what the ranks before it have, adds its own and passes it on. In an
//   exclusive scan what came is stored beside, as the input may be where the result goes to.
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

void scan(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks, rank = writer.rank();
  for (int b = 0; b < blocks; ++b) {
    std::vector<Operand> destinations = {output(b)};
    if (rank < p - 1) destinations.push_back(peer(rank + 1));
    if (rank == 0)
      writer.step(b, b, 1, {input(b)}, destinations);
    else
      writer.step(rank + b, b, 1, {peer(rank - 1), input(b)}, destinations,
                  rank == p - 1 ? Sum::complete : Sum::partial);
  }
}

/// A block is passed on in the round after the one in which it came.
void exclusiveScan(const PlanRequest& request, PlanWriter& writer) {
  const int p = request.ranks, rank = writer.rank();
  writer.needScratch(blocks);
  for (int b = 0; b < blocks; ++b) {
    const int round = 2 * rank - 1 + b;
    if (rank == 0) {
      writer.step(b, b, 1, {input(b)}, {peer(1)});
    } else if (rank == p - 1) {
      writer.step(round, b, 1, {peer(rank - 1)}, {output(b)});
    } else {
      writer.step(round, b, 1, {peer(rank - 1)}, {scratch(b)});
      writer.step(round + 1, b, 1, {scratch(b), input(b)}, {peer(rank + 1)});
      writer.step(round + 2, b, 1, {scratch(b)}, {output(b)});
    }
  }
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::broadcast, Collective::reduce, Collective::scan, Collective::exscan});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  writer.cutInto(blocks);
  if (request.collective == Collective::broadcast) return broadcast(request, writer);
  if (request.collective == Collective::scan) return scan(request, writer);
  if (request.collective == Collective::exscan) return exclusiveScan(request, writer);
  reduce(request, writer);
}

/// Up a line whose root is the last rank: every rank adds what the one before it sends.
TreeExchange lineUp(int ranks) {
  std::vector<int> parents, numbers;
  for (int v = 0; v < ranks; ++v) {
    parents.push_back(v - 1);
    numbers.push_back(ranks - 1 - v);
  }
  TreeExchange line;
  line.trees = {{std::make_shared<const Tree>(parents, 0), numbers}};
  line.combines = true;
  line.messages = blocks;
  return line;
}

Exchanges exchanges(const PlanRequest& request) {
  if (request.collective == Collective::scan) return {blocks, {lineUp(request.ranks)}};
  if (request.collective == Collective::exscan) {
    const int last = request.ranks - 1;
    Exchange end;
    end.to = [last](int rank) { return rank == last - 1 ? last : rank; };
    end.repeats = blocks;
    end.flows = true;
    if (last == 1) return {blocks, {end}};
    return {blocks, {lineUp(last), end}};
  }
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
    "Blocks follow one another along a line of ranks: fewest bytes: broadcast, reduce and scan of large data.",
    "Sanders et al.: Sequential and Parallel Algorithms and Data Structures, section 13.1.1",
    serves,
    write,
    exchanges,
    false,
    [](const PlanRequest& request) { return isPrefix(request.collective) && request.ranks > 8; }};

}  // namespace tacc
