// Streamed sums over several hosts: chunks of a plan's run are made before they go out, and taken when they are
// complete, in a ring of windows. While one chunk is under way, the next are made and the one before is taken.
#include <algorithm>

#include "comm/cluster/cluster_communicator.hpp"
#include "core/types.hpp"
#include "engine/streamed_sum.hpp"

namespace tacc {

void ClusterCommunicator::allReduceStreamed(const Call& call) {
  const std::size_t size = sizeOf(call.type);
  const auto member = static_cast<int>(std::ranges::find(everybody_, rank()) - everybody_.begin());
  const Algorithm& algorithm = algorithmFor(call, 0, call.count * size);
  const std::size_t chunk = std::min(call.count, chunkOf(algorithm, call, 0, member, true));
  const std::size_t chunks = (call.count + chunk - 1) / chunk;
  std::byte* const ring = window_.atLeast((chunksUnderWay + 1) * chunk * size);
  const auto window = [&](std::size_t k) { return ring + k % (chunksUnderWay + 1) * chunk * size; };
  const auto length = [&](std::size_t k) { return std::min(chunk, call.count - k * chunk); };

  std::vector<NetworkChunk> pieces;
  for (std::size_t k = 0; k < chunks; ++k) pieces.push_back({window(k), window(k), length(k)});
  start(call, {Collective::allReduce, algorithm, everybody_, 0, true, call.count, std::move(pieces)}, 0);
  runChunks(
      chunks, [&](std::size_t k) { call.streamed->make(k * chunk, length(k), window(k)); },
      [&](std::size_t k) { call.streamed->take(k * chunk, length(k), window(k)); });
}

void ClusterCommunicator::reduceStreamedInRankOrder(const Call& call) {
  std::vector<std::byte> numbers(call.count * sizeOf(call.type));
  if (call.count > 0) call.streamed->make(0, call.count, numbers.data());
  Call sum = call;
  sum.streamed = nullptr;
  sum.send = sum.receive = numbers.data();
  runCall(sum);
  if (call.count > 0) call.streamed->take(0, call.count, numbers.data());
}

}  // namespace tacc
