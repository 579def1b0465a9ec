// Streamed sums over several hosts: chunks are made, go in, between and out of the hosts, and are taken, in a ring of
// windows. While one chunk is between hosts, the next are made and the one before is taken.
#include <algorithm>
#include <cstring>

#include "comm/cluster/cluster_communicator.hpp"
#include "comm/streamed_sum.hpp"
#include "core/types.hpp"

namespace tacc {

void ClusterCommunicator::allReduceStreamed(const Call& call) {
  meetInNode();
  const std::size_t size = sizeOf(call.type);
  const bool inLanes = goesInLanes(call.count * size);
  const std::size_t lanes = inLanes ? static_cast<std::size_t>(node_->ranks()) : 1;
  const std::size_t mine = inLanes ? static_cast<std::size_t>(local_) : 0;
  const std::vector<int>& members = inLanes ? lane_ : leaders_;
  const bool inNetwork = inLanes || local_ == 0;
  // Every lane has the same number of elements; the last are zeros.
  const std::size_t total = (call.count + lanes - 1) / lanes * lanes;
  Call padded = call;
  padded.count = total;
  const std::size_t chunk = std::min(total, chunkOf(Collective::allReduce, members, padded, lanes) * lanes);
  const std::size_t chunks = (total + chunk - 1) / chunk;
  std::byte* const ring = window_.atLeast((chunksUnderWay + 1) * chunk * size);
  const auto window = [&](std::size_t k) { return ring + k % (chunksUnderWay + 1) * chunk * size; };
  const auto length = [&](std::size_t k) { return std::min(chunk, total - k * chunk); };
  const auto given = [&](std::size_t k) { return std::min(chunk, call.count - k * chunk); };
  const auto share = [&](std::size_t k) { return window(k) + mine * (length(k) / lanes) * size; };

  const auto inward = [&](std::size_t k) {
    call.streamed->make(k * chunk, given(k), window(k));
    std::memset(window(k) + given(k) * size, 0, (length(k) - given(k)) * size);
    if (inLanes)
      runInNode({Collective::reduceScatter, window(k), share(k), length(k) / lanes, call.type, call.op});
    else if (!isAlone())
      runInNode({Collective::reduce, window(k), inNetwork ? window(k) : nullptr, length(k), call.type, call.op});
  };
  const auto outward = [&](std::size_t k) {
    if (inLanes)
      runInNode({Collective::allGather, share(k), window(k), length(k) / lanes, call.type});
    else if (!isAlone())
      runInNode({Collective::broadcast, window(k), window(k), length(k), call.type});
    call.streamed->take(k * chunk, given(k), window(k));
  };

  if (inNetwork) {
    std::vector<NetworkChunk> pieces;
    for (std::size_t k = 0; k < chunks; ++k) pieces.push_back({share(k), share(k), length(k) / lanes});
    startBetween(call, {Collective::allReduce, members, 0, true, total / lanes, std::move(pieces)}, 0);
  }
  runPipeline({chunks, inNetwork, inward, outward});
  if (inLanes) lastAlgorithm_ = "lanes+" + lastAlgorithm_;
}

void ClusterCommunicator::reduceStreamedInRankOrder(const Call& call) {
  std::vector<std::byte> numbers(call.count * sizeOf(call.type));
  if (call.count > 0) call.streamed->make(0, call.count, numbers.data());
  Call sum = call;
  sum.send = sum.receive = numbers.data();
  reduceInRankOrder(sum);
  if (call.count > 0) call.streamed->take(0, call.count, numbers.data());
}

}  // namespace tacc
