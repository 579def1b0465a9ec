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

constexpr std::string_view name = "twoshot";

/// Round 0 of allreduce and reduce: block q of the input goes to rank q.
void scatterInput(PlanWriter& writer, int r, int p) {
  for (const Operand& other : othersThan(r, p)) {
    writer.step(r, 0, other.index, 1, {input(other.index)}, {other});
  }
}

Plan allReduce(const PlanRequest& request) {
  const int p = request.ranks;
  PlanWriter writer(request, name, p);
  for (int r = 0; r < p; ++r) {
    scatterInput(writer, r, p);
    std::vector<Operand> everybody = othersThan(r, p);
    everybody.insert(everybody.begin(), output(r));
    writer.step(r, 1, r, 1, allInRankOrder(r, p, input(r)), everybody);
    for (const Operand& other : othersThan(r, p)) {
      writer.step(r, 2, other.index, 1, {other}, {output(other.index)});
    }
  }
  return writer.finish();
}

Plan reduce(const PlanRequest& request) {
  const int p = request.ranks;
  const int root = request.root;
  PlanWriter writer(request, name, p);
  for (int r = 0; r < p; ++r) {
    scatterInput(writer, r, p);
    writer.step(r, 1, r, 1, allInRankOrder(r, p, input(r)), {r == root ? output(r) : peer(root)});
  }
  for (const Operand& other : othersThan(root, p)) {
    writer.step(root, 2, other.index, 1, {other}, {output(other.index)});
  }
  return writer.finish();
}

Plan broadcast(const PlanRequest& request) {
  const int p = request.ranks;
  const int root = request.root;
  const int blocks = p - 1;
  PlanWriter writer(request, name, blocks);
  const auto ownerOf = [&](int block) { return wrap(root + 1 + block, p); };
  for (int b = 0; b < blocks; ++b) {
    const int owner = ownerOf(b);
    writer.step(root, 0, b, 1, {input(b)}, {output(b), peer(owner)});
    std::vector<Operand> destinations = {output(b)};
    for (int i = 1; i < blocks; ++i) {
      const int other = ownerOf(wrap(b + i, blocks));
      destinations.push_back(peer(other));
      writer.step(other, 2, b, 1, {peer(owner)}, {output(b)});
    }
    writer.step(owner, 1, b, 1, {peer(root)}, destinations);
  }
  return writer.finish();
}

bool serves(const PlanRequest& request) {
  return request.ranks >= 1 &&
         isOneOf(request.collective, {Collective::allReduce, Collective::broadcast, Collective::reduce});
}

Plan make(const PlanRequest& request) {
  if (request.ranks == 1) return writeCopy(request, name);
  if (request.collective == Collective::allReduce) return allReduce(request);
  return request.collective == Collective::reduce ? reduce(request) : broadcast(request);
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
    name,
    "Every rank reduces one block straight from all others and hands it to all: two steps, fewest bytes.",
    "Direct reduce-scatter and allgather; as in MSCCL++ and Intel's shared memory collectives",
    serves,
    make,
    exchanges,
    false,
    suitsSharedMemory};

}  // namespace tacc
