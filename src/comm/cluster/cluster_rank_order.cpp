// Reductions over hosts whose bits depend on the contributions and on the number of ranks alone.
//
// Sums of a host's ranks would make the bits depend on who shares a host. So contributions travel as they are, as in
// direct reduce-scatter among all ranks: every rank collects those to its share of the vector, combines them in the
// order of the ranks in one pass, and hands the result to all. Inside a host they go through shared memory.
//
// Bytes through a host's link, with H hosts of P ranks and n bytes: (H-1)/H n (P + 1) each way, against 2 (H-1)/H n.
#include <algorithm>
#include <array>
#include <cstring>

#include "algorithms/rank_order.hpp"
#include "comm/call_kernel.hpp"
#include "comm/cluster/cluster_communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

/// Of one pass: bounds the memory that holds the contributions.
constexpr std::size_t passBytes = std::size_t{8} << 20;
/// Up to here every rank collects everything: one exchange instead of two.
constexpr std::size_t collectAllBytes = 4096;

/// The elements of a pass that one rank combines.
struct Share {
  std::size_t begin;
  std::size_t count;
};

Share shareOf(int rank, int ranks, std::size_t count) {
  const auto each = (count + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
  const std::size_t begin = std::min(count, static_cast<std::size_t>(rank) * each);
  return {begin, std::min(count - begin, each)};
}

}  // namespace

void ClusterCommunicator::checkRankOrder(const Call& call) {
  if (forced().empty() || internal_) return;
  const PlanRequest request{call.collective, ranks(), isRooted(call.collective) ? call.root : 0};
  const Algorithm& algorithm = *findAlgorithm(forced());
  if (!algorithm.serves(request) || !combinesInRankOrder(algorithm, request)) failOnOrder(algorithm, request);
}

void ClusterCommunicator::reduceInRankOrder(const Call& call) {
  checkRankOrder(call);
  endpoint_.beginIdle();
  if (node_) node_->announce(signature_);
  meetInNode();
  const std::size_t size = sizeOf(call.type);
  const bool isScatter = call.collective == Collective::reduceScatter;
  const bool toAll = call.collective == Collective::allReduce;
  const bool collectsAll = toAll && call.count * size <= collectAllBytes;
  const auto* input = static_cast<const std::byte*>(call.send);
  auto* output = static_cast<std::byte*>(call.receive);
  // Of a scatter the pass is over the blocks of all ranks, each of which is its rank's share.
  const auto blocks = static_cast<std::size_t>(isScatter ? ranks() : 1);
  const std::size_t pass = std::max<std::size_t>(static_cast<std::size_t>(ranks()), passBytes / size / blocks);
  const ReduceKernel combine = kernelOf(call, taccNumOps);

  std::vector<PointToPoint> moves;
  std::vector<const void*> sources(static_cast<std::size_t>(ranks()));
  const auto everyOther = [&](const auto& work) {  // begins with the next rank, so that not all send to one
    for (int step = 1; step < ranks(); ++step) work((rank() + step) % ranks(), (rank() - step + ranks()) % ranks());
  };
  const auto add = [&](bool isSend, int peer, const std::byte* data, std::size_t count) {
    if (count > 0) moves.push_back({isSend, peer, const_cast<std::byte*>(data), count, call.type});
  };

  for (std::size_t begin = 0; begin < call.count; begin += pass) {
    const std::size_t length = std::min(pass, call.count - begin);
    const auto share = [&](int rank) {
      return isScatter || collectsAll ? Share{0, length} : shareOf(rank, ranks(), length);
    };
    const auto place = [&](int rank) {  // of its share in this rank's input
      const std::size_t block = isScatter ? static_cast<std::size_t>(rank) * call.count : 0;
      return input + (block + begin + share(rank).begin) * size;
    };
    const Share mine = share(rank());
    std::byte* const pieces = workspace((static_cast<std::size_t>(ranks()) + 1) * mine.count * size);
    const auto piece = [&](int rank) { return pieces + static_cast<std::size_t>(rank) * mine.count * size; };
    std::byte* const result = isScatter                      ? output + begin * size
                              : toAll || rank() == call.root ? output + (begin + mine.begin) * size
                                                             : piece(ranks());

    moves.clear();
    everyOther([&](int to, int from) {
      add(true, to, place(to), share(to).count);
      add(false, from, piece(from), mine.count);
    });
    exchangeAll(moves, signature_, call_);

    for (int from = 0; from < ranks(); ++from)
      sources[static_cast<std::size_t>(from)] = from == rank() ? place(rank()) : piece(from);
    void* const destinations[] = {result};
    if (mine.count > 0)
      combine({.destinations = destinations,
               .destinationCount = 1,
               .sources = sources.data(),
               .sourceCount = ranks(),
               .count = mine.count,
               .divisor = call.op == taccAvg ? ranks() : 1});
    if (isScatter || collectsAll) continue;

    moves.clear();
    const auto target = [&](int of) { return output + (begin + share(of).begin) * size; };
    everyOther([&](int to, int from) {
      if (toAll || to == call.root) add(true, to, result, mine.count);
      if (toAll || rank() == call.root) add(false, from, target(from), share(from).count);
    });
    exchangeAll(moves, signature_, call_);
  }
  lastAlgorithm_ = "rankorder";
}

}  // namespace tacc
