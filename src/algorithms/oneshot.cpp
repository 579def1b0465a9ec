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
#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

/// Who needs what of whom, as the collective's shape says (core/collective.hpp).
class DirectNeeds {
 public:
  explicit DirectNeeds(const PlanRequest& request)
      : shape_(shapeOf(request.collective)), ranks_(request.ranks), root_(request.root) {}

  bool combines() const { return shape_.combines != Combines::nothing; }
  bool has(int rank) const { return shape_.send.isUsedOn(rank, root_); }
  /// Whether what `to` gets is made of what `from` has.
  bool needs(int to, int from) const {
    if (!has(from) || !shape_.receive.isUsedOn(to, root_)) return false;
    if (shape_.combines == Combines::lower) return from < to;
    return shape_.combines != Combines::upToOwn || from <= to;
  }
  /// What a rank has for `to`, and where what it gets of `from` belongs.
  Operand sent(int to) const { return input(shape_.send.holds == Holds::all ? to : 0); }
  Operand received(int from) const { return output(shape_.receive.holds == Holds::all ? from : 0); }
  bool isSameForAll() const { return shape_.send.holds == Holds::one; }

  std::vector<Operand> receivers(int rank) const {
    std::vector<Operand> others = othersThan(rank, ranks_);
    std::erase_if(others, [&](const Operand& other) { return !needs(other.index, rank); });
    // Of a prefix the highest first: in which order the lower ranks of a rank are met.
    if (isPrefix()) std::ranges::reverse(others);
    return others;
  }
  std::vector<Operand> senders(int rank) const {
    std::vector<Operand> others = othersThan(rank, ranks_);
    std::erase_if(others, [&](const Operand& other) { return !needs(rank, other.index); });
    return others;
  }
  /// What a result is combined of, in the order of ranks.
  std::vector<Operand> summands(int rank) const {
    std::vector<Operand> all = allInRankOrder(rank, ranks_, sent(rank));
    std::erase_if(all,
                  [&](const Operand& one) { return !needs(rank, one.kind == Operand::Kind::peer ? one.index : rank); });
    return all;
  }

 private:
  bool isPrefix() const { return shape_.combines == Combines::lower || shape_.combines == Combines::upToOwn; }

  const CollectiveShape& shape_;
  int ranks_, root_;
};

constexpr int mostPrefixes = 256;  // beyond, stating what is exchanged takes too long

bool serves(const PlanRequest& request) {
  if (isPrefix(request.collective)) return request.ranks >= 1 && request.ranks <= mostPrefixes;
  return request.collective != Collective::barrier && request.ranks >= 1;
}

void write(const PlanRequest& request, PlanWriter& writer) {
  const DirectNeeds all(request);
  const int r = writer.rank();
  const std::vector<Operand> receivers = all.receivers(r);
  const bool copies = all.needs(r, r) && !all.combines();
  if (all.isSameForAll()) {
    std::vector<Operand> destinations = receivers;
    if (copies) destinations.insert(destinations.begin(), all.received(r));
    if (!destinations.empty()) writer.step(0, 0, 1, {input(0)}, destinations);
  } else {
    if (copies) writer.step(0, 0, 1, {all.sent(r)}, {all.received(r)});
    for (const Operand& other : receivers) writer.step(0, 0, 1, {all.sent(other.index)}, {other});
  }
  if (!all.combines()) {
    for (const Operand& other : all.senders(r)) writer.step(1, 0, 1, {other}, {all.received(other.index)});
  } else if (const std::vector<Operand> summands = all.summands(r); !summands.empty()) {
    const bool isComplete = static_cast<int>(summands.size()) == request.ranks;
    writer.step(1, 0, 1, summands, {output(0)}, isComplete ? Sum::complete : Sum::partial);
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
      const int first = shapeOf(collective).combines == Combines::upToOwn ? 0 : 1;
      Exchange some, copied;
      some.to = [=](int r) { return r >= first && r + shift < p ? r + shift : r; };
      some.combines = true;
      copied.to = [=](int r) { return r == 0 ? shift : r; };
      if (first + shift < p) all.phases.emplace_back(std::move(some));
      if (first == 1) all.phases.emplace_back(std::move(copied));
    }
    return all;
  }
  const BufferShape &send = shapeOf(collective).send, &receive = shapeOf(collective).receive;
  const bool isTakenApart = send.holds == Holds::all, isPutTogether = receive.holds == Holds::all;
  if (isRooted(collective)) {
    if (!combines && (isTakenApart || isPutTogether)) all.phases.emplace_back(Copy{1, request.root});
    const bool isOutward = send.usedBy == UsedBy::root;
    all.phases.emplace_back(Star{request.root, isOutward, 1, combines, isTakenApart || isPutTogether});
  } else {
    if (isTakenApart && isPutTogether) all.phases.emplace_back(Copy{});
    all.phases.emplace_back(EveryToEvery{1, combines, isTakenApart});
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
