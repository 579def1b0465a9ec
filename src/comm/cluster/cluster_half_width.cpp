// Sums of 16-bit numbers over several hosts: partial sums travel as floats, so that they are rounded once, and results
// as 16 bits. Of a long vector that is 6 bytes a number where floats both ways are 8.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "comm/cluster/cluster_communicator.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"

namespace tacc {
namespace {

/// Elements that go together: as floats they are 16 MiB, which a network takes long enough for that a second start does
/// not count.
constexpr std::size_t mostTogether = std::size_t{4} << 20;

}  // namespace

/// Of 16-bit numbers. Two plans, one after the other, take more turns than one: that pays for long vectors only.
bool ClusterCommunicator::gathersHalfWidth(const Call& call) {
  if (call.collective != Collective::allReduce) return false;
  const std::size_t count = std::min(call.count, mostTogether);
  if (!forced().empty() || !steered(Collective::allReduce, count * sizeof(float)).empty()) return false;
  const bool inLanes = goesInLanes(count * sizeof(float));
  const std::size_t lanes = inLanes ? static_cast<std::size_t>(node_->ranks()) : 1;
  NetworkChooser& chooser = chooserFor(inLanes ? lane_ : leaders_);
  const std::size_t block = count / (lanes * leaders_.size());
  if (block == 0) return false;
  const auto seconds = [&](Collective collective, std::size_t bytes) {
    const NetworkCandidate& best = chooser.explain(collective, 0, bytes).front();
    return best.isPossible ? best.seconds : std::numeric_limits<double>::infinity();
  };
  return seconds(Collective::reduceScatter, block * sizeof(float)) +
             seconds(Collective::allGather, block * sizeOf(call.type)) <
         seconds(Collective::allReduce, count / lanes * sizeof(float));
}

void ClusterCommunicator::allReduceHalfWidth(const Call& call) {
  meetInNode();
  internal_ = true;  // its parts are not what the dynamic choice times
  Call part = call;
  for (std::size_t begin = 0; begin < call.count; begin += mostTogether) {
    const std::size_t offset = begin * sizeOf(call.type);
    part.count = std::min(mostTogether, call.count - begin);
    part.send = static_cast<const std::byte*>(call.send) + offset;
    part.receive = static_cast<std::byte*>(call.receive) + offset;
    allReducePartHalfWidth(part);
  }
  internal_ = false;
}

/// Inside the hosts numbers are widened and summed while earlier pieces are between hosts, and results spread likewise.
void ClusterCommunicator::allReducePartHalfWidth(const Call& call) {
  const bool inLanes = goesInLanes(call.count * sizeof(float));
  const std::size_t lanes = inLanes ? static_cast<std::size_t>(node_->ranks()) : 1;
  const std::size_t lane = inLanes ? static_cast<std::size_t>(local_) : 0;
  const std::vector<int>& members = inLanes ? lane_ : leaders_;
  const bool inNetwork = inLanes || local_ == 0;
  const std::size_t size = sizeOf(call.type), stacks = lanes * members.size();

  // The vector, filled up with zeros, is cut into pieces; each is a stack of blocks: for every lane one for every host.
  Call scatter{Collective::reduceScatter, nullptr, nullptr, (call.count + stacks - 1) / stacks, taccFloat32, call.op};
  const std::size_t longest = chunkOf(scatter.collective, members, scatter, 1);
  const std::size_t pieces = (scatter.count + longest - 1) / longest;
  const std::size_t block = (call.count + stacks * pieces - 1) / (stacks * pieces);
  const std::size_t stack = block * members.size(), piece = block * stacks;
  std::byte* const memory = window_.atLeast(pieces * (piece + block) * (sizeof(float) + size));
  auto* const wide = reinterpret_cast<float*>(memory);
  float* const sums = wide + pieces * piece;
  auto* const results = reinterpret_cast<std::byte*>(sums + pieces * block);
  std::byte* const own = results + pieces * piece * size;
  const auto given = [&](std::size_t k) { return std::min(piece, call.count - std::min(call.count, k * piece)); };

  std::vector<NetworkChunk> toSum, toGather;
  for (std::size_t k = 0; k < pieces; ++k) {
    toSum.push_back({reinterpret_cast<std::byte*>(wide + k * piece + lane * stack),
                     reinterpret_cast<std::byte*>(sums + k * block), block});
    toGather.push_back({own + k * block * size, results + (k * piece + lane * stack) * size, block});
  }
  if (inNetwork)
    startBetween(scatter, {scatter.collective, members, 0, false, scatter.count, std::move(toSum), false, block}, 0);
  runPipeline({pieces, inNetwork,
               [&](std::size_t k) {
                 float* const numbers = wide + k * piece;
                 widenToFloat(call.type, numbers, static_cast<const std::byte*>(call.send) + k * piece * size,
                              given(k));
                 std::fill(numbers + given(k), numbers + piece, 0.0f);
                 if (inLanes)
                   runInNode({Collective::reduceScatter, numbers, numbers + lane * stack, stack, taccFloat32, call.op});
                 else if (!isAlone())
                   runInNode({Collective::reduce, numbers, inNetwork ? numbers : nullptr, piece, taccFloat32, call.op});
               },
               [&](std::size_t k) {
                 if (inNetwork) narrowFromFloat(call.type, own + k * block * size, sums + k * block, block);
               }});
  const std::string summed = lastAlgorithm_;

  const Call gather{Collective::allGather, nullptr, nullptr, scatter.count, call.type};
  if (inNetwork)
    startBetween(gather, {gather.collective, members, 0, false, gather.count, std::move(toGather), false, block},
                 pieces);
  runPipeline({pieces, inNetwork, {}, [&](std::size_t k) {
                 std::byte* const all = results + k * piece * size;
                 if (inLanes)
                   runInNode({Collective::allGather, all + lane * stack * size, all, stack, call.type});
                 else if (!isAlone())
                   runInNode({Collective::broadcast, all, all, piece, call.type});
                 std::memcpy(static_cast<std::byte*>(call.receive) + k * piece * size, all, given(k) * size);
               }});
  if (inNetwork) lastAlgorithm_ = (inLanes ? "lanes+" : "") + summed + "+" + lastAlgorithm_;
}

}  // namespace tacc
