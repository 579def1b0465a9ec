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
//   Steps: 1. Bytes sent by a rank at most, with N the bytes of a block:
//     allreduce, broadcast and scatter (root), allgather, reduce-scatter, alltoall: (p-1) N;  reduce, gather: N.
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr std::string_view name = "oneshot";

void allReduce(PlanWriter& writer, int p) {
  for (int r = 0; r < p; ++r) {
    writer.step(r, 0, 0, 1, {input(0)}, othersThan(r, p));
    writer.step(r, 1, 0, 1, allInRankOrder(r, p, input(0)), {output(0)});
  }
}

void broadcast(PlanWriter& writer, int p, int root) {
  std::vector<Operand> everybody = othersThan(root, p);
  everybody.insert(everybody.begin(), output(0));
  writer.step(root, 0, 0, 1, {input(0)}, everybody);
  for (int r = 0; r < p; ++r) {
    if (r != root) writer.step(r, 1, 0, 1, {peer(root)}, {output(0)});
  }
}

void reduce(PlanWriter& writer, int p, int root) {
  for (int r = 0; r < p; ++r) {
    if (r != root) writer.step(r, 0, 0, 1, {input(0)}, {peer(root)});
  }
  writer.step(root, 1, 0, 1, allInRankOrder(root, p, input(0)), {output(0)});
}

void allGather(PlanWriter& writer, int p) {
  for (int r = 0; r < p; ++r) {
    std::vector<Operand> everybody = othersThan(r, p);
    everybody.insert(everybody.begin(), output(r));
    writer.step(r, 0, 0, 1, {input(0)}, everybody);
    for (const Operand& other : othersThan(r, p)) writer.step(r, 1, 0, 1, {other}, {output(other.index)});
  }
}

void reduceScatter(PlanWriter& writer, int p) {
  for (int r = 0; r < p; ++r) {
    for (const Operand& other : othersThan(r, p)) writer.step(r, 0, 0, 1, {input(other.index)}, {other});
    writer.step(r, 1, 0, 1, allInRankOrder(r, p, input(r)), {output(0)});
  }
}

void allToAll(PlanWriter& writer, int p) {
  for (int r = 0; r < p; ++r) {
    writer.step(r, 0, 0, 1, {input(r)}, {output(r)});
    for (const Operand& other : othersThan(r, p)) {
      writer.step(r, 0, 0, 1, {input(other.index)}, {other});
      writer.step(r, 1, 0, 1, {other}, {output(other.index)});
    }
  }
}

void gather(PlanWriter& writer, int p, int root) {
  writer.step(root, 0, 0, 1, {input(0)}, {output(root)});
  for (const Operand& other : othersThan(root, p)) {
    writer.step(other.index, 0, 0, 1, {input(0)}, {peer(root)});
    writer.step(root, 1, 0, 1, {other}, {output(other.index)});
  }
}

void scatter(PlanWriter& writer, int p, int root) {
  writer.step(root, 0, 0, 1, {input(root)}, {output(0)});
  for (const Operand& other : othersThan(root, p)) {
    writer.step(root, 0, 0, 1, {input(other.index)}, {other});
    writer.step(other.index, 1, 0, 1, {peer(root)}, {output(0)});
  }
}

bool serves(const PlanRequest& request) { return request.collective != Collective::barrier && request.ranks >= 1; }

Plan make(const PlanRequest& request) {
  const int p = request.ranks;
  if (p == 1) return writeCopy(request, name);
  PlanWriter writer(request, name);
  switch (request.collective) {
    case Collective::allReduce:
      allReduce(writer, p);
      break;
    case Collective::broadcast:
      broadcast(writer, p, request.root);
      break;
    case Collective::reduce:
      reduce(writer, p, request.root);
      break;
    case Collective::allGather:
      allGather(writer, p);
      break;
    case Collective::reduceScatter:
      reduceScatter(writer, p);
      break;
    case Collective::allToAll:
      allToAll(writer, p);
      break;
    case Collective::gather:
      gather(writer, p, request.root);
      break;
    default:
      scatter(writer, p, request.root);
      break;
  }
  return writer.finish();
}

Exchanges exchanges(const PlanRequest& request) {
  Exchanges all{1, {}};
  const Collective collective = request.collective;
  const bool combines = isReduction(collective);
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
  return request.collective != Collective::allReduce &&
         (request.collective != Collective::reduce || request.ranks <= 2);
}

}  // namespace

constinit const Algorithm oneshotAlgorithm = {
    name,
    "Everybody sends straight to everybody who needs it; one step, most bytes: for small data.",
    "Direct exchange; as in NCCL and MSCCL++ for small messages",
    serves,
    make,
    exchanges,
    false,
    suitsSharedMemory};

}  // namespace tacc
