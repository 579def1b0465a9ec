#include "selection/message_size.hpp"

#include <algorithm>
#include <bit>

namespace tacc {
namespace {

// What a message takes on the wire: long enough that the work per message is little, short enough that several of them
// under way do not fill the buffers on the way, where the network then drops and sends again. On links of 200 Mbit/s an
// allreduce of 8 MiB takes 616 ms with messages of 16 KiB and 712 ms with 128 KiB; on loopback, at 2 GB/s, 47 and 33 ms
// for 64 MiB with 16 and 256 KiB. Where hosts share an uplink it is their share of that: on links of 1 Gbit/s, four of
// which share 250 Mbit/s, an allreduce of 4 MiB takes 141 ms with messages of 16 KiB, 145 with 32 and 157 with 64.
constexpr double messageSeconds = 1e-3;
constexpr std::size_t longestMessage = 256 * 1024;
// A longer message only delays a call's beginning and end, so a long call can have longer ones: with 64 KiB instead of
// 16 an allreduce of 64 MiB takes less than half of the processor time on those links, and as long.
constexpr std::size_t messagesOfCall = 1024;

}  // namespace

std::size_t bytesOfAll(const PlanRequest& request, std::size_t bytes) {
  return partitionOf(request.collective) == Partition::split ? bytes : bytes * static_cast<std::size_t>(request.ranks);
}

std::size_t messageBytes(double bytesPerSecond, std::size_t bytes) {
  const auto ofTime = static_cast<std::size_t>(std::clamp(bytesPerSecond * messageSeconds, 0.0, 1e15));
  const std::size_t ofLink = std::clamp(ofTime, leastMessage, longestMessage);
  return std::bit_floor(std::clamp(bytes / messagesOfCall, ofLink, longestMessage));
}

}  // namespace tacc
