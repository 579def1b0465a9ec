#include "selection/network_selection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "selection/selection.hpp"

namespace tacc {
namespace {

// What a message takes on the wire: long enough that the work per message is little, short enough that several of them
// under way do not fill the buffers on the way, where the network then drops and sends again. On links of 200 Mbit/s an
// allreduce of 8 MiB takes 616 ms with messages of 16 KiB and 712 ms with 128 KiB; on loopback, at 2 GB/s, 47 and 33 ms
// for 64 MiB with 16 and 256 KiB.
constexpr double messageSeconds = 1e-3;
constexpr std::size_t leastMessage = 16 * 1024, longestMessage = 256 * 1024, leastOfLane = 4096;
// A longer message only delays a call's beginning and end, so a long call can have longer ones: with 64 KiB instead of
// 16 an allreduce of 64 MiB takes less than half of the processor time on those links, and as long.
constexpr std::size_t messagesOfCall = 1024;

/// Bytes that could have been sent while a message's first byte was on its way.
double latencyBytes(const NetworkSpeed& speed) { return (speed.latency + 2 * speed.overhead) * speed.bytesPerSecond; }

std::string_view preferredName(const NetworkShape& shape) {
  const double ranks = shape.request.ranks, bytes = static_cast<double>(shape.bytes);
  const double perStep = latencyBytes(shape.speed);
  switch (shape.request.collective) {
    case Collective::allReduce: {
      // Recursive doubling: lg p steps of all the bytes; ring: 2(p-1) steps of 1/p of them, between neighbours only.
      const double fewSteps = std::ceil(std::log2(ranks)) * (perStep + bytes);
      const double fewBytes = 2 * (ranks - 1) * (perStep + bytes / ranks);
      return fewSteps < fewBytes ? "recursive_doubling" : "ring";
    }
    case Collective::broadcast:
    case Collective::reduce:
      return bytes < 8 * perStep ? "binomial" : "chain";
    case Collective::allGather:
    case Collective::reduceScatter:
      return bytes < perStep ? "circulant" : "ring";
    default:
      return "oneshot";
  }
}

}  // namespace

const Algorithm& selectNetworkAlgorithm(const NetworkShape& shape) {
  return selectAlgorithm(
      {shape.request, shape.bytes, false, shape.forced.empty() ? preferredName(shape) : shape.forced}, {});
}

std::size_t bytesOfAll(const PlanRequest& request, std::size_t bytes) {
  return partitionOf(request.collective) == Partition::split ? bytes : bytes * static_cast<std::size_t>(request.ranks);
}

std::size_t messageBytes(const NetworkSpeed& speed, std::size_t bytes, int lanes) {
  const auto ofTime = static_cast<std::size_t>(std::max(0.0, speed.bytesPerSecond * messageSeconds));
  const std::size_t ofLane =
      std::max(std::clamp(ofTime, leastMessage, longestMessage) / static_cast<std::size_t>(lanes), leastOfLane);
  return std::bit_floor(std::clamp(bytes / messagesOfCall, ofLane, longestMessage));
}

}  // namespace tacc
