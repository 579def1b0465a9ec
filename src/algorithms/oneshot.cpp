// One-shot: everybody sends its data straight to everybody who needs it, and reduces all sources in one pass.
//
//   The fewest steps there can be: one message after which all is there. It pays in bytes: in an allreduce every rank
//   reads the vectors of all p ranks. Sources are always combined in rank order 0, 1, ..., p-1, so all ranks get the
//   same bits, and the same bits as twoshot.
//
//   allreduce, p = 3, blocks are whole vectors:
//     rank   round 0                 round 1
//      0     a -> 1, 2               a + from 1 + from 2 -> output
//      1     b -> 2, 0               from 0 + b + from 2 -> output
//      2     c -> 0, 1               from 0 + from 1 + c -> output
//
//   scan, exscan: every rank sends its vector to all higher ones, for up to 256 ranks.
//
//   Steps: 1. Bytes sent by a rank at most, with N the bytes of a block:
//     allreduce, broadcast and scatter (root), allgather, reduce-scatter, alltoall: (p-1) N;  reduce, gather: N.
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

void allReduce(PlanWriter& writer, int r, int p) {
  writer.step(0, 0, 1, {input(0)}, othersThan(r, p));
  writer.step(1, 0, 1, allInRankOrder(r, p, input(0)), {output(0)}, Sum::complete);
}

void broadcast(PlanWriter& writer, int r, int p, int root) {
  if (r != root) return writer.step(1, 0, 1, {peer(root)}, {output(0)});
  std::vector<Operand> everybody = othersThan(root, p);
  everybody.insert(everybody.begin(), output(0));
  writer.step(0, 0, 1, {input(0)}, everybody);
}

void reduce(PlanWriter& writer, int r, int p, int root) {
  if (r != root) return writer.step(0, 0, 1, {input(0)}, {peer(root)});
  writer.step(1, 0, 1, allInRankOrder(root, p, input(0)), {output(0)}, Sum::complete);
}

void allGather(PlanWriter& writer, int r, int p) {
  const std::vector<Operand> others = othersThan(r, p);
  std::vector<Operand> everybody = others;
  everybody.insert(everybody.begin(), output(r));
  writer.step(0, 0, 1, {input(0)}, everybody);
  for (const Operand& other : others) writer.step(1, 0, 1, {other}, {output(other.index)});
}

void reduceScatter(PlanWriter& writer, int r, int p) {
  for (const Operand& other : othersThan(r, p)) writer.step(0, 0, 1, {input(other.index)}, {other});
  writer.step(1, 0, 1, allInRankOrder(r, p, input(r)), {output(0)}, Sum::complete);
}

void allToAll(PlanWriter& writer, int r, int p) {
  const std::vector<Operand> others = othersThan(r, p);
  writer.step(0, 0, 1, {input(r)}, {output(r)});
  for (const Operand& other : others) writer.step(0, 0, 1, {input(other.index)}, {other});
  for (const Operand& other : others) writer.step(1, 0, 1, {other}, {output(other.index)});
}

void gather(PlanWriter& writer, int r, int p, int root) {
  if (r != root) return writer.step(0, 0, 1, {input(0)}, {peer(root)});
  writer.step(0, 0, 1, {input(0)}, {output(root)});
  for (const Operand& other : othersThan(root, p)) writer.step(1, 0, 1, {other}, {output(other.index)});
}

void scatter(PlanWriter& writer, int r, int p, int root) {
  if (r != root) return writer.step(1, 0, 1, {peer(root)}, {output(0)});
  writer.step(0, 0, 1, {input(root)}, {output(0)});
  for (const Operand& other : othersThan(root, p)) writer.step(0, 0, 1, {input(other.index)}, {other});
}

/// Highest first: in which order the lower ranks of a rank are met.
void prefix(PlanWriter& writer, int r, int p, bool isInclusive) {
  std::vector<Operand> higher, sources;
  for (int q = p - 1; q > r; --q) higher.push_back(peer(q));
  for (int q = 0; q < r; ++q) sources.push_back(peer(q));
  if (isInclusive) sources.push_back(input(0));
  if (!higher.empty()) writer.step(0, 0, 1, {input(0)}, higher);
  if (!sources.empty())
    writer.step(1, 0, 1, sources, {output(0)}, isInclusive && r == p - 1 ? Sum::complete : Sum::partial);
}

constexpr int mostPrefixes = 256;  // beyond, stating what is exchanged takes too long

bool serves(const PlanRequest& request) {
  if (isPrefix(request.collective)) return request.ranks >= 1 && request.ranks <= mostPrefixes;
  return request.collective != Collective::barrier && request.ranks >= 1;
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const int r = writer.rank(), p = request.ranks, root = request.root;
  switch (request.collective) {
    case Collective::allReduce:
      return allReduce(writer, r, p);
    case Collective::broadcast:
      return broadcast(writer, r, p, root);
    case Collective::reduce:
      return reduce(writer, r, p, root);
    case Collective::allGather:
      return allGather(writer, r, p);
    case Collective::reduceScatter:
      return reduceScatter(writer, r, p);
    case Collective::allToAll:
      return allToAll(writer, r, p);
    case Collective::gather:
      return gather(writer, r, p, root);
    case Collective::scan:
    case Collective::exscan:
      return prefix(writer, r, p, request.collective == Collective::scan);
    case Collective::scatter:
      return scatter(writer, r, p, root);
    case Collective::barrier:
      return;  // has no plan
  }
}

Exchanges exchanges(const PlanRequest& request) {
  Exchanges all{1, {}};
  const Collective collective = request.collective;
  const bool combines = isReduction(collective);
  const int p = request.ranks;
  if (isPrefix(collective)) {
    for (int shift = p - 1; shift > 0; --shift) {
      // Of an exclusive scan what rank 0 gives is the first of the summands.
      const int first = collective == Collective::scan ? 0 : 1;
      Exchange some, copied;
      some.to = [=](int r) { return r >= first && r + shift < p ? r + shift : r; };
      some.combines = true;
      copied.to = [=](int r) { return r == 0 ? shift : r; };
      if (first + shift < p) all.phases.emplace_back(std::move(some));
      if (first == 1) all.phases.emplace_back(std::move(copied));
    }
    return all;
  }
  if (collective == Collective::allToAll) all.phases.emplace_back(Copy{});
  if (collective == Collective::gather || collective == Collective::scatter)
    all.phases.emplace_back(Copy{1, request.root});
  if (isRooted(collective)) {
    const bool isOutward = isOneOf(collective, {Collective::broadcast, Collective::scatter});
    const bool oneByOne = isOneOf(collective, {Collective::gather, Collective::scatter});
    all.phases.emplace_back(Star{request.root, isOutward, 1, combines, oneByOne});
  } else {
    const bool oneByOne = isOneOf(collective, {Collective::allToAll, Collective::reduceScatter});
    all.phases.emplace_back(EveryToEvery{1, combines, oneByOne});
  }
  return all;
}

/// All that is needed is read straight from where it lies.
bool suitsSharedMemory(const PlanRequest& request) {
  if (isPrefix(request.collective)) return request.ranks <= 8;
  return request.collective != Collective::allReduce &&
         (request.collective != Collective::reduce || request.ranks <= 2);
}

}  // namespace

constinit const Algorithm oneshotAlgorithm = {
    "oneshot",
    "Everybody sends straight to everybody who needs it; one step, most bytes: for small data.",
    "Direct exchange; as in NCCL and MSCCL++ for small messages",
    serves,
    write,
    exchanges,
    false,
    suitsSharedMemory,
    true};

}  // namespace tacc
