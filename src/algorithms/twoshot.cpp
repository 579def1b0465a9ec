// Two-shot: a direct reduce-scatter, then a direct allgather. Every rank looks after one block.
//
//   allreduce: the vector has B = p blocks. Round 0: every rank sends block q of its input to rank q. Round 1: rank r
//   reduces block r over all ranks, in rank order and in one pass, and sends the result to all. Round 2: everybody
//   takes the p-1 results of the others.
//
//   allreduce, p = 3, rank 0 (a0 is block 0 of its input; A is the finished block):
//     round 0   a1 -> 1                    a2 -> 2
//     round 1   a0 + from 1 + from 2 -> A0, also to 1 and 2
//     round 2   from 1 -> A1               from 2 -> A2
//   Steps: 2. Bytes sent and received by each rank: 2 (p-1)/p N. One pass of reduction over N/p per source.
//
//   broadcast: B = p-1 blocks, one for each rank but the root. Round 0: the root hands out the blocks. Round 1: each
//   owner passes its block on to the others. Steps: 2. The root sends N, the others (p-2)/(p-1) N, and each receives N.
//
//   reduce: B = p blocks, reduced as in allreduce, then sent to the root only. Steps: 2. Each rank but the root sends
//   N; the root receives 2 (p-1)/p N.
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

/// Round 0 of allreduce and reduce: block q of the input goes to rank q.
void scatterInput(PlanWriter& writer, int r, int p) {
  for (const Operand& other : othersThan(r, p)) writer.step(0, other.index, 1, {input(other.index)}, {other});
}

/// Round 2: the results of the others.
void takeResults(PlanWriter& writer, int r, int p) {
  for (const Operand& other : othersThan(r, p)) writer.step(2, other.index, 1, {other}, {output(other.index)});
}

void allReduce(PlanWriter& writer, int r, int p) {
  writer.cutInto(p);
  scatterInput(writer, r, p);
  std::vector<Operand> everybody = othersThan(r, p);
  everybody.insert(everybody.begin(), output(r));
  writer.step(1, r, 1, allInRankOrder(r, p, input(r)), everybody, Sum::complete);
  takeResults(writer, r, p);
}

void reduce(PlanWriter& writer, int r, int p, int root) {
  writer.cutInto(p);
  scatterInput(writer, r, p);
  writer.step(1, r, 1, allInRankOrder(r, p, input(r)), {r == root ? output(r) : peer(root)}, Sum::complete);
  if (r == root) takeResults(writer, r, p);
}

void broadcast(PlanWriter& writer, int r, int p, int root) {
  const int blocks = p - 1;
  writer.cutInto(blocks);
  const auto ownerOf = [&](int block) { return wrap(root + 1 + block, p); };
  if (r == root) {
    for (int b = 0; b < blocks; ++b) writer.step(0, b, 1, {input(b)}, {output(b), peer(ownerOf(b))});
    return;
  }
  const int own = wrap(r - root - 1, p);
  std::vector<Operand> destinations = {output(own)};
  for (int i = 1; i < blocks; ++i) destinations.push_back(peer(ownerOf(wrap(own + i, blocks))));
  writer.step(1, own, 1, {peer(root)}, destinations);
  for (int b = 0; b < blocks; ++b)
    if (b != own) writer.step(2, b, 1, {peer(ownerOf(b))}, {output(b)});
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::broadcast, Collective::reduce});
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const int r = writer.rank(), p = request.ranks;
  if (request.collective == Collective::allReduce) return allReduce(writer, r, p);
  if (request.collective == Collective::reduce) return reduce(writer, r, p, request.root);
  broadcast(writer, r, p, request.root);
}

Exchanges exchanges(const PlanRequest& request) {
  const int p = request.ranks;
  if (request.collective == Collective::broadcast) {
    Exchanges all{p - 1, {Star{request.root, true, 1, false, true}}};
    if (p > 2) all.phases.emplace_back(EveryToEvery{1, false, false, request.root});
    return all;
  }
  Exchanges all{p, {EveryToEvery{1, true, true}}};
  if (request.collective == Collective::reduce) {
    all.phases.emplace_back(Star{request.root, false, 1, false, true});
  } else {
    all.phases.emplace_back(EveryToEvery{1, false, false});
  }
  return all;
}

/// Every rank reads and adds its part, not one all of it. With two ranks there is nothing to share of a reduce.
bool suitsSharedMemory(const PlanRequest& request) {
  return request.collective == Collective::allReduce || (request.collective == Collective::reduce && request.ranks > 2);
}

}  // namespace

constinit const Algorithm twoshotAlgorithm = {
    "twoshot",
    "Every rank reduces one block straight from all others and hands it to all: two steps, fewest bytes.",
    "Direct reduce-scatter and allgather; as in MSCCL++ and Intel's shared memory collectives",
    serves,
    write,
    exchanges,
    false,
    suitsSharedMemory};

}  // namespace tacc
