// Sums of 16-bit numbers over several hosts: partial sums travel as floats, so that they are rounded once, and results
// as 16 bits. Of a long vector that is 6 bytes a number where floats both ways are 8.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/types.hpp"
#include "comm/cluster_communicator.hpp"
#include "compute/reduce.hpp"

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
    const NetworkCandidate& best = chooser.explain(collective, bytes).front();
    return best.isPossible ? best.seconds : std::numeric_limits<double>::infinity();
  };
  return seconds(Collective::reduceScatter, block * sizeof(float)) +
             seconds(Collective::allGather, block * sizeOf(call.type)) <
         seconds(Collective::allReduce, count / lanes * sizeof(float));
}

void ClusterCommunicator::allReduceHalfWidth(const Call& call) {
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

void ClusterCommunicator::allReducePartHalfWidth(const Call& call) {
  const bool inLanes = goesInLanes(call.count * sizeof(float));
  const std::size_t lanes = inLanes ? static_cast<std::size_t>(node_->ranks()) : 1;
  const std::size_t lane = inLanes ? static_cast<std::size_t>(local_) : 0;
  const std::vector<int>& members = inLanes ? lane_ : leaders_;
  const bool inNetwork = inLanes || local_ == 0;
  // The vector, filled up with zeros, is a stack of blocks: for every lane one for every host.
  const std::size_t stacks = lanes * members.size();
  const std::size_t block = (call.count + stacks - 1) / stacks, stack = block * members.size(), total = block * stacks;
  const std::size_t size = sizeOf(call.type);

  std::byte* const memory = window_.atLeast((total + block) * sizeof(float) + (total + block) * size);
  auto* const wide = reinterpret_cast<float*>(memory);
  float* const sums = wide + total;
  auto* const results = reinterpret_cast<std::byte*>(sums + block);
  std::byte* const own = results + total * size;

  widenToFloat(call.type, wide, call.send, call.count);
  std::fill(wide + call.count, wide + total, 0.0f);
  if (inLanes)
    runInNode({Collective::reduceScatter, wide, wide + lane * stack, stack, taccFloat32, call.op});
  else if (!isAlone())
    runInNode({Collective::reduce, wide, inNetwork ? wide : nullptr, total, taccFloat32, call.op});
  if (inNetwork) {
    Call between{Collective::reduceScatter, nullptr, nullptr, block, taccFloat32, call.op};
    runBetween(between, members, reinterpret_cast<std::byte*>(wide + lane * stack), reinterpret_cast<std::byte*>(sums));
    const std::string scatter = lastAlgorithm_;
    narrowFromFloat(call.type, own, sums, block);
    between.collective = Collective::allGather;
    between.type = call.type;
    between.op = taccSum;
    runBetween(between, members, own, results + lane * stack * size);
    lastAlgorithm_ = scatter + "+" + lastAlgorithm_;
  }
  const std::string between = lastAlgorithm_;
  if (inLanes)
    runInNode({Collective::allGather, results + lane * stack * size, results, stack, call.type});
  else if (!isAlone())
    runInNode({Collective::broadcast, results, results, total, call.type});
  std::memcpy(call.receive, results, call.count * size);
  lastAlgorithm_ = (inLanes ? "lanes+" : "") + between;
}

}  // namespace tacc
